// Errors as the client's own classes.
import assert from 'node:assert/strict';
import http from 'node:http';
import test from 'node:test';

import {choicesOf, client, france, italy, main, OpenAI, user} from './server.mjs';

async function rejects(call, type, {status, code, param, message}) {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof type, `${error.constructor.name}: ${error.message}`);
    if (status) assert.equal(error.status, status);
    if (code !== undefined) assert.equal(error.code, code);
    if (param !== undefined) assert.equal(error.param, param);
    if (message) assert.match(error.message, message);
    return true;
  });
}

// Fields of a chat that are wrong, and the parameter that the error names.
const WRONG = [
  [{messages: 'Hello'}, 'messages'],
  [{messages: []}, 'messages'],
  [{messages: undefined}, null],
  [{messages: [{role: 'wizard', content: 'x'}]}, 'messages[0].role'],
  [{messages: [{role: 'user', content: 7}]}, 'messages[0].content'],
  [{messages: user([{type: 'image_url', image_url: {url: 'data:'}}])}, 'messages[0].content[0]'],
  [{temperature: 'hot'}, 'temperature'],
  [{temperature: 2.5}, 'temperature'],
  [{top_p: 1.5}, 'top_p'],
  [{n: 0}, 'n'],
  [{n: 1.5}, 'n'],
  [{max_tokens: -1}, 'max_tokens'],
  [{max_tokens: '5'}, 'max_tokens'],
  [{max_tokens: 5, max_completion_tokens: 5}, 'max_completion_tokens'],
  [{stop: 5}, 'stop'],
  [{stop: ['a', 5]}, 'stop'],
  [{stream: 'yes'}, 'stream'],
  [{stream_options: {include_usage: true}}, 'stream_options'],
  [{seed: 1.5}, 'seed'],
  [{logprobs: 3}, 'logprobs'],
  [{top_logprobs: 3}, 'top_logprobs'],
  [{logprobs: true, top_logprobs: 21}, 'top_logprobs'],
  [{presence_penalty: 3}, 'presence_penalty'],
  [{frequency_penalty: 'much'}, 'frequency_penalty'],
  [{logit_bias: {word: 1}}, 'logit_bias'],
  [{logit_bias: {5: 101}}, 'logit_bias'],
  [{logit_bias: {99999999: 1}}, 'logit_bias'],
  [{response_format: 'json'}, 'response_format'],
  [{response_format: {type: 'xml'}}, 'response_format.type'],
  [{tools: {}}, 'tools'],
  [{tools: [{type: 'function'}]}, 'tools[0].function'],
  [{tool_choice: 'sometimes'}, 'tool_choice'],
  [{tool_choice: 'required'}, 'tool_choice'],
  [{model: 7}, 'model'],
];
test('errors: every wrong field is a BadRequestError that names it', async (t) => {
  for (const [fields, param] of WRONG) {
    await t.test(JSON.stringify(fields), async () => {
      await rejects(
          client.chat.completions.create({...italy, ...fields}), OpenAI.BadRequestError,
          {status: 400, param});
    });
  }
});

// Fields that ask for what is not done.
const UNSUPPORTED = [
  [{functions: [{name: 'f'}]}, 'functions'],
  [{audio: {voice: 'alloy', format: 'wav'}}, 'audio'],
  [{modalities: ['text', 'audio']}, 'modalities'],
  [{parallel_tool_calls: false}, 'parallel_tool_calls'],
  [{web_search_options: {}}, 'web_search_options'],
  [
    {response_format: {type: 'json_schema', json_schema: {name: 'x', strict: true, schema: {}}}},
    'response_format.json_schema.strict',
  ],
];
test('errors: what is not done is refused by name', async (t) => {
  for (const [fields, param] of UNSUPPORTED) {
    await t.test(param, async () => {
      await rejects(
          client.chat.completions.create({...italy, ...fields}), OpenAI.BadRequestError,
          {code: 'unsupported', param});
    });
  }
});

test('errors: wrong fields of a completion', async (t) => {
  const wrong = [
    [{prompt: {}}, 'prompt'], [{prompt: []}, 'prompt'], [{prompt: ['a', 5]}, 'prompt'],
    [{prompt: [-1]}, 'prompt'], [{prompt: [1, 'a']}, 'prompt'], [{prompt: ''}, 'prompt'],
    [{logprobs: true}, 'logprobs'], [{echo: 1}, 'echo'], [{suffix: 'x'}, 'suffix'],
    [{best_of: 2}, 'best_of'], [{n: 129}, 'n'],
  ];
  for (const [fields, param] of wrong) {
    await t.test(JSON.stringify(fields), async () => {
      await rejects(
          client.completions.create({...france, ...fields}), OpenAI.BadRequestError, {param});
    });
  }
});

test('errors: an unknown model is a NotFoundError', async () => {
  await rejects(
      client.chat.completions.create({...italy, model: 'gpt-4'}), OpenAI.NotFoundError,
      {status: 404, code: 'model_not_found', param: 'model'});
  await rejects(client.models.retrieve('gpt-4'), OpenAI.NotFoundError, {code: 'model_not_found'});
});

test('errors: a prompt beyond the context is told by OpenAI\'s code', async () => {
  const messages = user('word '.repeat(20000));
  await rejects(
      client.chat.completions.create({...italy, messages}), OpenAI.BadRequestError,
      {code: 'context_length_exceeded', message: /context/});
  const {status} = await fetch(`${main.url}/health`);
  assert.equal(status, 200);
});

test('errors: a stream that is refused is an error before its first chunk', async () => {
  await rejects(
      client.chat.completions.create({...italy, stream: true, temperature: 9}),
      OpenAI.BadRequestError, {param: 'temperature'});
});

test('errors: an endpoint that is not there is a NotFoundError', async () => {
  await rejects(
      client.embeddings.create({model: 'tiny-k3', input: 'x'}), OpenAI.NotFoundError,
      {code: 'unknown_url'});
  await rejects(
      client.responses.create({model: 'tiny-k3', input: 'x'}), OpenAI.NotFoundError,
      {code: 'unknown_url'});
});

test('errors: another method is 405, another content type 415, both in OpenAI\'s shape', async () => {
  const url = `${main.url}/v1/chat/completions`;
  const text = {method: 'POST', headers: {'Content-Type': 'text/plain'}, body: '{}'};
  for (const [init, status] of [[{}, 405], [text, 415]]) {
    const reply = await fetch(url, init);
    assert.equal(reply.status, status);
    const {error} = await reply.json();
    assert.equal(error.type, 'invalid_request_error');
    assert.ok(error.message && error.code);
  }
});

test('errors: a body that is no JSON object is a 400', async () => {
  for (const body of ['', '{', '[]', '"x"', '{"a":1}}', '['.repeat(100_000), '{"n":1e999}', '\xff']) {
    const reply = await fetch(`${main.url}/v1/completions`, {
      method: 'POST',
      headers: {'Content-Type': 'application/json'},
      body,
    });
    assert.equal(reply.status, 400, body.slice(0, 20));
    assert.ok((await reply.json()).error.message);
  }
});

test('errors: a body beyond the limit is a 413 that the client reads', async () => {
  const messages = user('x'.repeat(33 << 20));
  await rejects(
      client.chat.completions.create({...italy, messages}), OpenAI.APIError, {status: 413});
});

test('errors: a header beyond the limit is a 431', async () => {
  const status = await new Promise((resolve, reject) => {
    const headers = {'X-Long': 'x'.repeat(20_000)};
    http.get(`${main.url}/health`, {headers}, (reply) => resolve(reply.resume().statusCode))
        .on('error', reject);
  });
  assert.equal(status, 431);
});

test('errors: a request for another host is a 403: no page can reach the server by a name', async () => {
  const status = await new Promise((resolve, reject) => {
    const headers = {Host: 'evil.example'};
    http.get(`${main.url}/v1/models`, {headers}, (reply) => resolve(reply.resume().statusCode))
        .on('error', reject);
  });
  assert.equal(status, 403);
});

test('errors: after all of them a good request is answered as ever', async () => {
  const [choice] = choicesOf(await client.chat.completions.create(italy));
  assert.equal(choice.content, 'The capital of Italy is Rome.');
});
