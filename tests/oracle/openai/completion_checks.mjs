// Plain completions.
import assert from 'node:assert/strict';
import test from 'node:test';

import {client, france, tokenize} from './server.mjs';

const six = {...france, max_tokens: 6};

test('completions: a string goes on', async () => {
  const reply = await client.completions.create(six);
  assert.match(reply.id, /^cmpl-/);
  assert.equal(reply.object, 'text_completion');
  assert.deepEqual(reply.choices, [
    {index: 0, text: ' Paris. The Eiffel', logprobs: null, finish_reason: 'length'},
  ]);
  assert.equal(reply.usage.prompt_tokens, 5);
  assert.equal(reply.usage.completion_tokens, 6);
});

test('completions: max_tokens is 16 when it is left out', async () => {
  assert.equal((await client.completions.create(france)).usage.completion_tokens, 16);
});

test('completions: token arrays are the same prompt', async () => {
  const {tokens} = await tokenize({content: france.prompt});
  const reply = await client.completions.create({...six, prompt: tokens});
  assert.equal(reply.choices[0].text, ' Paris. The Eiffel');
});

test('completions: several prompts, n choices each, in their order', async () => {
  const prompts = [france.prompt, 'The days of the week are Monday, Tuesday,'];
  const reply = await client.completions.create({...six, prompt: prompts, n: 2});
  assert.deepEqual(reply.choices.map(({index}) => index), [0, 1, 2, 3]);
  assert.equal(reply.choices[0].text, ' Paris. The Eiffel');
  assert.equal(reply.choices[1].text, reply.choices[0].text);
  assert.match(reply.choices[2].text, /^ Wednesday/);
  assert.equal(reply.choices[3].text, reply.choices[2].text);
});

test('completions: several token arrays', async () => {
  const ids = async (content) => (await tokenize({content})).tokens;
  const prompt = [await ids(france.prompt), await ids('The')];
  const reply = await client.completions.create({...six, prompt});
  assert.equal(reply.choices[0].text, ' Paris. The Eiffel');
  assert.match(reply.choices[1].text, /^ capital/);
});

test('completions: echo puts the prompt before the text', async () => {
  const reply = await client.completions.create({...six, echo: true});
  assert.equal(reply.choices[0].text, 'The capital of France is Paris. The Eiffel');
});

test('completions: logprobs are lists of one length, offsets into the text', async () => {
  const reply = await client.completions.create({...six, logprobs: 2, echo: true});
  const [{text, logprobs}] = reply.choices;
  assert.equal(logprobs.tokens.join(''), text);
  assert.equal(logprobs.token_logprobs[0], null);
  assert.equal(logprobs.top_logprobs[0], null);
  for (const [i, token] of logprobs.tokens.entries()) {
    assert.equal(text.substr(logprobs.text_offset[i], token.length), token);
    if (i === 0) continue;
    assert.ok(logprobs.token_logprobs[i] <= 0);
    assert.equal(Object.keys(logprobs.top_logprobs[i]).length, 2);
  }
});

test('completions: echo and max_tokens 0 score a text', async () => {
  const reply = await client.completions.create({...six, max_tokens: 0, logprobs: 0, echo: true});
  const [{text, logprobs, finish_reason}] = reply.choices;
  assert.equal(text, france.prompt);
  assert.equal(finish_reason, 'length');
  assert.equal(logprobs.token_logprobs.length, 5);
  assert.equal(reply.usage.completion_tokens, 0);
});

test('completions: logprobs of a prompt are those of the same tokens when generated', async () => {
  const made = await client.completions.create({...six, logprobs: 0});
  const again = await client.completions.create(
      {...six, prompt: france.prompt + made.choices[0].text, max_tokens: 0, logprobs: 0, echo: true});
  assert.deepEqual(again.choices[0].logprobs.token_logprobs.slice(5), made.choices[0].logprobs.token_logprobs);
});

test('completions: a stream is the whole text, with usage', async () => {
  const stream = await client.completions.create(
      {...six, stream: true, echo: true, logprobs: 1, stream_options: {include_usage: true}});
  const whole = await client.completions.create({...six, echo: true, logprobs: 1});
  let text = '';
  let usage;
  const tokens = [];
  for await (const chunk of stream) {
    usage = chunk.usage;
    text += chunk.choices[0]?.text ?? '';
    tokens.push(...chunk.choices[0]?.logprobs?.tokens ?? []);
  }
  assert.equal(text, whole.choices[0].text);
  assert.deepEqual(tokens, whole.choices[0].logprobs.tokens);
  assert.deepEqual(usage, whole.usage);
});

test('completions: a stop string inside a word of several tokens', async () => {
  const reply = await client.completions.create({...six, max_tokens: 20, stop: ['Eiffe']});
  assert.equal(reply.choices[0].text, ' Paris. The ');
  assert.equal(reply.choices[0].finish_reason, 'stop');
});
