// Streams: what they hold, and what becomes of one that its client leaves.
import assert from 'node:assert/strict';
import test from 'node:test';

import {choicesOf, client, endless, eventually, gather, italy, main, OpenAI, user} from './server.mjs';

const streamed = async (more) =>
    gather(await client.chat.completions.create({...italy, stream: true, ...more}));

test('stream: its pieces are the whole reply', async () => {
  const [whole] = choicesOf(await client.chat.completions.create(italy));
  const {choices, chunks} = await streamed({});
  assert.deepEqual(choices, [whole]);
  assert.ok(chunks.length > 10);
});

test('stream: the first chunk has the role, the last the finish_reason, all one id', async () => {
  const {chunks} = await streamed({});
  assert.equal(chunks[0].choices[0].delta.role, 'assistant');
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'stop');
  assert.deepEqual(chunks.at(-1).choices[0].delta, {});
  for (const chunk of chunks) {
    assert.equal(chunk.id, chunks[0].id);
    assert.equal(chunk.object, 'chat.completion.chunk');
    assert.equal(chunk.usage, undefined);
  }
});

test('stream: the client\'s own helper puts the reply together', async () => {
  const reply = await client.chat.completions.stream(italy).finalChatCompletion();
  assert.equal(reply.choices[0].message.content, 'The capital of Italy is Rome.');
  assert.equal(reply.choices[0].finish_reason, 'stop');
});

test('stream: include_usage adds one last chunk without choices', async () => {
  const whole = await client.chat.completions.create(italy);
  const {chunks, usage} = await streamed({stream_options: {include_usage: true}});
  assert.deepEqual(chunks.at(-1).choices, []);
  assert.deepEqual(usage, whole.usage);
  for (const chunk of chunks.slice(0, -1)) assert.equal(chunk.usage, null);
});

test('stream: n = 2 interleaves choices that are whole in themselves', async () => {
  const fields = {...italy, n: 2, temperature: 1, seed: 5};
  const whole = choicesOf(await client.chat.completions.create(fields));
  const {choices} = await streamed(fields);
  assert.deepEqual(choices, whole);
});

test('stream: max_tokens inside the thinking: length, no content', async () => {
  const {choices: [choice]} = await streamed({max_tokens: 6});
  assert.equal(choice.finish, 'length');
  assert.equal(choice.content, '');
  assert.equal(choice.reasoning, 'The user asks for the capital');
});

test('stream: a stop string that spans tokens never shows its beginning', async () => {
  const {choices: [choice], chunks} = await streamed({stop: ['l of It']});
  assert.equal(choice.content, 'The capita');
  assert.equal(choice.finish, 'stop');
  for (const {choices: [{delta}]} of chunks) assert.ok(!/l of/.test(delta.content ?? ''));
});

test('stream: what a stop string held back and did not need comes after all', async () => {
  const {choices: [choice]} = await streamed({stop: ['Rome. And', '.!']});
  assert.equal(choice.content, 'The capital of Italy is Rome.');
});

test('stream: logprobs are those of the whole reply', async () => {
  const fields = {logprobs: true, top_logprobs: 2};
  const [whole] = choicesOf(await client.chat.completions.create({...italy, ...fields}));
  const {choices: [choice]} = await streamed(fields);
  assert.ok(whole.logprobs.length > 0);
  assert.deepEqual(choice.logprobs, whole.logprobs);
});

test('stream: include_progress tells how far the prompt is, and disturbs no reader', async () => {
  const {choices: [choice], chunks} = await streamed({stream_options: {include_progress: true}});
  assert.equal(choice.content, 'The capital of Italy is Rome.');
  const news = chunks.filter((chunk) => chunk.progress);
  assert.ok(news.length > 0);
  for (const {progress} of news) assert.equal(progress.prompt_tokens, 28);
});

test('stream: text of several bytes a character is never cut inside one', async () => {
  const fields = {model: 'tiny-k3', prompt: 'Привет, мир! 你好，世界。', temperature: 0, max_tokens: 24};
  const whole = await client.completions.create(fields);
  let text = '';
  for await (const {choices: [choice]} of await client.completions.create({...fields, stream: true})) {
    assert.ok(choice.text.isWellFormed?.() ?? true);
    text += choice.text;
  }
  assert.equal(text, whole.choices[0].text);
});

test('abort: a stream that is left is gone from /v1/requests, and the server goes on', async () => {
  const stream = await client.completions.create({...endless, stream: true});
  for await (const chunk of stream) {
    const running = await main.requests();
    assert.deepEqual(running.map(({id}) => id), [chunk.id]);
    stream.controller.abort();
    break;
  }
  await main.idle();
  const [choice] = choicesOf(await client.chat.completions.create(italy));
  assert.equal(choice.content, 'The capital of Italy is Rome.');
});

test('abort: leaving the loop ends the request too', async () => {
  for await (const chunk of await client.completions.create({...endless, stream: true})) {
    assert.ok(chunk.id);
    break;
  }
  await main.idle();
});

test('abort: a signal ends a request that is not streamed', async () => {
  const leave = new AbortController();
  const reply = client.completions.create(endless, {signal: leave.signal});
  const refused = assert.rejects(reply, OpenAI.APIUserAbortError);
  await eventually(async () => (await main.requests()).length === 1, 'the request runs');
  leave.abort();
  await refused;
  await main.idle();
});

test('abort: a client\'s timeout ends the request', async () => {
  await assert.rejects(
      client.completions.create(endless, {timeout: 300}), OpenAI.APIConnectionTimeoutError);
  await main.idle();
});

test('requests: DELETE ends a stream, which says so by its finish_reason', async () => {
  const stream = await client.completions.create({...endless, stream: true});
  let last;
  for await (const chunk of stream) {
    if (!last) await fetch(`${main.url}/v1/requests/${chunk.id}`, {method: 'DELETE'});
    last = chunk;
  }
  assert.equal(last.choices[0].finish_reason, 'cancelled');
  await main.idle();
});

test('requests: DELETE of one that is not there is a 404', async () => {
  const reply = await fetch(`${main.url}/v1/requests/chatcmpl-none`, {method: 'DELETE'});
  assert.equal(reply.status, 404);
});

test('requests: the list tells progress and an estimate', async () => {
  const stream = await client.chat.completions.create(
      {...italy, messages: user('Count.'), max_tokens: 3000, logit_bias: endless.logit_bias, stream: true});
  let seen = 0;
  for await (const chunk of stream) {
    if (++seen < 20) continue;
    const [running] = await main.requests();
    assert.equal(running.id, chunk.id);
    assert.equal(running.state, 'decoding');
    assert.ok(running.completion_tokens >= seen - 5);
    assert.equal(running.prompt_tokens_done, running.prompt_tokens);
    assert.equal(running.max_tokens, 3000);
    assert.ok(running.end_eta_s > 0);
    break;
  }
  await main.idle();
});
