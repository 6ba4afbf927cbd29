// Tools, through whole round trips.
import assert from 'node:assert/strict';
import test from 'node:test';

import {choicesOf, client, gather, OpenAI, tokenize, user} from './server.mjs';

const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Get the current weather for a city.',
    parameters: {type: 'object', properties: {city: {type: 'string'}}, required: ['city']},
  },
};
const ask = {
  model: 'tiny-k3',
  messages: user('What is the weather in Paris?'),
  tools: [weather],
  temperature: 0,
  max_tokens: 200,
};

test('tools: auto calls the function with JSON arguments', async () => {
  const reply = await client.chat.completions.create({...ask, tool_choice: 'auto'});
  const [{message, finish_reason}] = reply.choices;
  assert.equal(finish_reason, 'tool_calls');
  assert.equal(message.content, null);
  const [call] = message.tool_calls;
  assert.equal(call.type, 'function');
  assert.equal(call.function.name, 'get_weather');
  assert.deepEqual(JSON.parse(call.function.arguments), {city: 'Paris'});
});

test('tools: a stream gives the same call in pieces', async () => {
  const [whole] = choicesOf(await client.chat.completions.create(ask));
  const {choices: [choice], chunks} =
      await gather(await client.chat.completions.create({...ask, stream: true}));
  assert.equal(choice.finish, 'tool_calls');
  assert.equal(choice.calls[0].arguments, whole.calls[0].arguments);
  assert.equal(choice.calls[0].name, 'get_weather');
  assert.match(choice.calls[0].id, /^call_/);
  const pieces = chunks.flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? []);
  assert.equal(pieces.filter(({id}) => id).length, 1);
});

test('tools: the client\'s stream helper sees the call', async () => {
  const call = await client.chat.completions.stream(ask).finalFunctionToolCall();
  assert.deepEqual(JSON.parse(call.arguments), {city: 'Paris'});
});

test('tools: a whole round trip by hand', async () => {
  const first = await client.chat.completions.create(ask);
  const {message} = first.choices[0];
  const messages = [
    ...ask.messages, message,
    {role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'sunny, 21 degrees'},
  ];
  const reply = await client.chat.completions.create({...ask, messages});
  assert.equal(reply.choices[0].finish_reason, 'stop');
  assert.match(reply.choices[0].message.content, /sunny/);
});

test('tools: a whole round trip by the client\'s runTools, streaming and not', async () => {
  for (const stream of [false, true]) {
    const asked = [];
    const tool = {
      type: 'function',
      function: {
        ...weather.function,
        parse: JSON.parse,
        function: ({city}) => {
          asked.push(city);
          return 'sunny, 21 degrees';
        },
      },
    };
    const runner = client.chat.completions.runTools({...ask, tools: [tool], stream});
    assert.match(await runner.finalContent(), /sunny/);
    assert.deepEqual(asked, ['Paris']);
  }
});

test('tools: several results in one turn are taken', async () => {
  const call = (id, city) =>
      ({id, type: 'function', function: {name: 'get_weather', arguments: JSON.stringify({city})}});
  const messages = [
    ...user('What is the weather in Paris and Rome?'),
    {role: 'assistant', content: null, tool_calls: [call('a', 'Paris'), call('b', 'Rome')]},
    {role: 'tool', tool_call_id: 'a', content: 'sunny'},
    {role: 'tool', tool_call_id: 'b', content: [{type: 'text', text: 'rainy'}]},
  ];
  const reply = await client.chat.completions.create({...ask, messages});
  assert.ok(reply.choices[0].message.content.length > 0);
});

test('tools: none and required put K3\'s notes into the prompt', async () => {
  const ids = async (tool_choice) =>
      (await tokenize({messages: ask.messages, tools: ask.tools, tool_choice})).count;
  const auto = await ids('auto');
  for (const choice of ['none', 'required']) {
    assert.ok(await ids(choice) > auto);
    const reply = await client.chat.completions.create({...ask, tool_choice: choice});
    assert.equal(reply.usage.prompt_tokens, await ids(choice));
  }
});

test('tools: required calls one', async () => {
  const reply = await client.chat.completions.create({...ask, tool_choice: 'required'});
  assert.equal(reply.choices[0].finish_reason, 'tool_calls');
});

test('tools: forcing one function, which K3 has no word for, is refused by name', async () => {
  const tool_choice = {type: 'function', function: {name: 'get_weather'}};
  await assert.rejects(client.chat.completions.create({...ask, tool_choice}), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.code, 'unsupported');
    assert.equal(error.param, 'tool_choice');
    return true;
  });
});

test('tools: max_tokens inside the arguments: length, and what there is', async () => {
  const whole = await client.chat.completions.create(ask);
  const max_tokens = whole.usage.completion_tokens - 20;
  const {choices: [choice]} =
      await gather(await client.chat.completions.create({...ask, max_tokens, stream: true}));
  assert.equal(choice.finish, 'length');
  const [same] = choicesOf(await client.chat.completions.create({...ask, max_tokens}));
  assert.equal(same.finish, 'length');
  assert.deepEqual(same.calls.map(({name}) => name), choice.calls.map(({name}) => name));
});
