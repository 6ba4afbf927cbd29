// Models and whole chat replies.
import assert from 'node:assert/strict';
import test from 'node:test';

import {choicesOf, client, italy, main, tokenize, user} from './server.mjs';

test('models: list has the one model, in pages as the client reads them', async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.deepEqual(ids, ['tiny-k3']);
});

test('models: retrieve finds it by name', async () => {
  const model = await client.models.retrieve('tiny-k3');
  assert.equal(model.object, 'model');
  assert.ok(model.max_model_len >= 1024);
});

test('chat: a reply has every documented field', async () => {
  const reply = await client.chat.completions.create(italy);
  assert.match(reply.id, /^chatcmpl-/);
  assert.equal(reply.object, 'chat.completion');
  assert.equal(reply.model, 'tiny-k3');
  assert.ok(Math.abs(reply.created - Date.now() / 1000) < 60);
  const [choice] = reply.choices;
  assert.equal(choice.index, 0);
  assert.equal(choice.finish_reason, 'stop');
  assert.equal(choice.logprobs, null);
  assert.equal(choice.message.role, 'assistant');
  assert.equal(choice.message.content, 'The capital of Italy is Rome.');
  assert.equal(choice.message.refusal, null);
  assert.equal(choice.message.tool_calls, undefined);
});

test('chat: the request id is the reply\'s', async () => {
  const {data, request_id} = await client.chat.completions.create(italy).withResponse();
  assert.equal(request_id, data.id);
});

test('chat: thinking is reasoning_content, never content', async () => {
  const [choice] = choicesOf(await client.chat.completions.create(italy));
  assert.equal(choice.reasoning, 'The user asks for the capital of Italy. It is Rome.');
});

test('chat: thinking false goes straight to the answer', async () => {
  const [choice] = choicesOf(await client.chat.completions.create({...italy, thinking: false}));
  assert.equal(choice.reasoning, '');
  assert.equal(choice.content, 'The capital of Italy is Rome.');
});

test('chat: usage counts the prompt, the reply and its thinking', async () => {
  const {usage} = await client.chat.completions.create(italy);
  const {count} = await tokenize({messages: italy.messages});
  assert.equal(usage.prompt_tokens, count);
  assert.equal(usage.completion_tokens, 33);
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  const thought = (await tokenize({content: 'The user asks for the capital of Italy. It is Rome.'})).count;
  assert.equal(usage.completion_tokens_details.reasoning_tokens, thought);
});

test('chat: n = 2 greedy gives the same reply twice, and counts the prompt once', async () => {
  const reply = await client.chat.completions.create({...italy, n: 2});
  const [one, two] = choicesOf(reply);
  assert.equal(reply.choices[1].index, 1);
  assert.deepEqual(one, two);
  assert.equal(reply.usage.prompt_tokens, 28);
  assert.equal(reply.usage.completion_tokens, 66);
});

test('chat: max_tokens inside the thinking: length, no content, reasoning as far as it went', async () => {
  const reply = await client.chat.completions.create({...italy, max_tokens: 6});
  const [choice] = reply.choices;
  assert.equal(choice.finish_reason, 'length');
  assert.ok(!choice.message.content);
  assert.equal(choice.message.reasoning_content, 'The user asks for the capital');
  assert.equal(reply.usage.completion_tokens, 6);
});

test('chat: max_completion_tokens is the same limit', async () => {
  const reply = await client.chat.completions.create({...italy, max_completion_tokens: 6});
  assert.equal(reply.choices[0].finish_reason, 'length');
  assert.equal(reply.usage.completion_tokens, 6);
});

test('chat: a stop string that spans tokens cuts the content before it', async () => {
  const [choice] = choicesOf(await client.chat.completions.create({...italy, stop: ['l of It']}));
  assert.equal(choice.content, 'The capita');
  assert.equal(choice.finish, 'stop');
});

test('chat: a stop string does not touch the thinking', async () => {
  const [choice] = choicesOf(await client.chat.completions.create({...italy, stop: 'user asks'}));
  assert.equal(choice.content, 'The capital of Italy is Rome.');
  assert.match(choice.reasoning, /The user asks/);
});

test('chat: the first of several stop strings counts', async () => {
  const stop = ['Rome', ' Ita', 'nowhere'];
  const [choice] = choicesOf(await client.chat.completions.create({...italy, stop}));
  assert.equal(choice.content, 'The capital of');
});

test('chat: logprobs and top_logprobs tell every token of the content', async () => {
  const reply = await client.chat.completions.create({...italy, logprobs: true, top_logprobs: 3});
  const [{message, logprobs}] = reply.choices;
  assert.equal(logprobs.content.map(({token}) => token).join(''), message.content);
  const bytes = logprobs.content.flatMap((entry) => entry.bytes);
  assert.equal(Buffer.from(bytes).toString(), message.content);
  for (const entry of logprobs.content) {
    assert.ok(entry.logprob <= 0);
    assert.equal(entry.top_logprobs.length, 3);
    assert.equal(entry.top_logprobs[0].token, entry.token);  // greedy
    assert.equal(entry.top_logprobs[0].logprob, entry.logprob);
    const chances = entry.top_logprobs.map(({logprob}) => logprob);
    assert.deepEqual(chances, [...chances].sort((a, b) => b - a));
  }
});

test('chat: logprobs without top_logprobs has no alternatives', async () => {
  const reply = await client.chat.completions.create({...italy, logprobs: true});
  const entries = reply.choices[0].logprobs.content;
  assert.ok(entries.length > 0);
  for (const entry of entries) assert.deepEqual(entry.top_logprobs, []);
});

test('chat: logprobs end where a stop string cut the content', async () => {
  const reply = await client.chat.completions.create({...italy, logprobs: true, stop: ' is Ro'});
  const [{message, logprobs}] = reply.choices;
  assert.equal(message.content, 'The capital of Italy');
  assert.equal(logprobs.content.map(({token}) => token).join(''), message.content);
});

test('chat: system and developer messages are the same prompt', async () => {
  const ids = async (role) => (await tokenize({
                                messages: [{role, content: 'Be brief.'}, ...italy.messages],
                              })).tokens;
  assert.deepEqual(await ids('system'), await ids('developer'));
  assert.notDeepEqual(await ids('system'), (await tokenize({messages: italy.messages})).tokens);
  const messages = [{role: 'developer', content: 'Be brief.'}, ...italy.messages];
  const [choice] = choicesOf(await client.chat.completions.create({...italy, messages}));
  assert.equal(choice.finish, 'stop');
});

test('chat: text parts are joined in their order', async () => {
  const parts = [{type: 'text', text: 'What is the capital'}, {type: 'text', text: ' of Italy?'}];
  const [choice] = choicesOf(await client.chat.completions.create({...italy, messages: user(parts)}));
  assert.match(choice.content, /Rome/);
});

test('chat: a conversation goes on from its history', async () => {
  const first = await client.chat.completions.create(italy);
  const messages =
      [...italy.messages, first.choices[0].message, {role: 'user', content: 'What is the capital of Japan?'}];
  const reply = await client.chat.completions.create({...italy, messages});
  assert.match(reply.choices[0].message.content, /Tokyo/);
});

test('chat: reasoning_effort changes the prompt', async () => {
  const low = await client.chat.completions.create({...italy, reasoning_effort: 'low'});
  assert.ok(low.usage.prompt_tokens > 28);
  assert.equal(low.choices[0].finish_reason, 'stop');
});

test('chat: response_format json_object yields JSON', async () => {
  const reply = await client.chat.completions.create({
    ...italy,
    messages: user('What is the capital of Japan?'),
    response_format: {type: 'json_object'},
  });
  const made = JSON.parse(reply.choices[0].message.content);
  assert.match(JSON.stringify(made), /Tokyo/);
});

for (const markup of ['<|sep|>', '<|close|>', '<|end_of_msg|>']) {
  test(`chat: ${markup} in a user's text stays text`, async () => {
    const special = (ids) => ids.filter((id) => id >= 3842 && id <= 3845).length;
    const messages = user(`${markup} What is 2 + 3?`);
    const {tokens} = await tokenize({messages});
    const plain = await tokenize({messages: user('What is 2 + 3?')});
    assert.equal(special(tokens), special(plain.tokens));
    const reply = await client.chat.completions.create({...italy, messages});
    assert.equal(reply.usage.prompt_tokens, tokens.length);
    assert.equal(reply.choices[0].finish_reason, 'stop');
    assert.match(reply.choices[0].message.content, /5/);
  });
}

test('chat: fields that no one knows are ignored', async () => {
  const [choice] = choicesOf(await client.chat.completions.create(
      {...italy, user: 'someone', metadata: {a: 'b'}, store: false, made_up: [1, {}]}));
  assert.equal(choice.content, 'The capital of Italy is Rome.');
});

test('tokens: tokenize and detokenize are inverse for any text', async () => {
  for (const text of ['Hello, world', 'naïve 🍎 你好\n\t', '<|sep|> is no token here', '']) {
    const {tokens, count} = await tokenize({content: text});
    assert.equal(count, tokens.length);
    const back = await client.post(`${main.url}/detokenize`, {body: {tokens}});
    assert.equal(back.content, text);
  }
});

test('tokens: parse_special reads control tokens', async () => {
  const {tokens} = await tokenize({content: '<|end_of_msg|>', parse_special: true});
  assert.deepEqual(tokens, [3842]);
  assert.ok((await tokenize({content: '<|end_of_msg|>'})).count > 1);
});
