// A full queue, keys, and many clients at once.
import assert from 'node:assert/strict';
import test, {after, before} from 'node:test';

import {choicesOf, client, endless, eventually, france, gather, italy, main, OpenAI, Server, user} from './server.mjs';

// One place, nowhere to wait, and a key.
const KEY = 'a key';
let narrow;
let keyed;
before(async () => {
  narrow = await Server.start('--parallel', '1', '--queue', '0', '--api-key', KEY, '--model-name', 'k3');
  narrow.key = KEY;
  keyed = narrow.client();
});
after(() => narrow.child.kill('SIGKILL'));
const small = {...france, model: 'k3', max_tokens: 2};

// Takes the only place; returns what gives it back.
async function takePlace() {
  const stream = await keyed.completions.create({...endless, model: 'k3', stream: true});
  const reading = (async () => {
    for await (const chunk of stream) assert.ok(chunk);
  })();
  return async () => {
    stream.controller.abort();
    await reading;
    await narrow.idle();
  };
}

test('keys: without the key an AuthenticationError, with it an answer', async () => {
  for (const apiKey of ['another', 'a key too', KEY.toUpperCase()]) {
    await assert.rejects(narrow.client({apiKey}).models.list(), OpenAI.AuthenticationError);
  }
  assert.equal((await fetch(`${narrow.url}/v1/models`)).status, 401);
  assert.equal((await fetch(`${narrow.url}/health`)).status, 200);
  assert.equal((await keyed.models.list()).data[0].id, 'k3');
});

test('queue: full, it is a RateLimitError with Retry-After', async () => {
  const giveBack = await takePlace();
  await assert.rejects(keyed.completions.create(small), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    assert.equal(error.code, 'queue_full');
    assert.ok(Number(error.headers.get('retry-after')) >= 1);
    return true;
  });
  await giveBack();
});

test('queue: the client\'s own retry succeeds when there is room again', async () => {
  const giveBack = await takePlace();
  const statuses = [];
  const patient = narrow.client({
    maxRetries: 5,
    fetch: async (...call) => {
      const reply = await fetch(...call);
      statuses.push(reply.status);
      if (statuses.length === 1) await giveBack();
      return reply;
    },
  });
  const reply = await patient.completions.create(small);
  assert.equal(reply.choices[0].text, ' Paris.');
  assert.equal(statuses[0], 429);
  assert.equal(statuses.at(-1), 200);
});

test('queue: what waits is listed with its place and is served in turn', async () => {
  const streams = [];
  for (let i = 0; i < 4; ++i) {
    streams.push(await client.completions.create({...endless, stream: true}));
  }
  const waiting = client.chat.completions.create(italy);
  await eventually(
      async () => (await main.requests()).some((each) => each.queue_position === 1), 'one waits');
  for (const stream of streams) stream.controller.abort();
  assert.equal(choicesOf(await waiting)[0].content, 'The capital of Italy is Rome.');
  await main.idle();
});

// What differs between two replies to the same request.
const nameless = (reply) => JSON.stringify(
    reply, (key, value) => key === 'id' || key === 'created' ? undefined : value);

const tools = [{type: 'function', function: {name: 'get_weather', parameters: {type: 'object'}}}];
const MIXED = [
  (c) => c.chat.completions.create(italy),
  (c) => c.chat.completions.create({...italy, temperature: 1, seed: 3, n: 2, logprobs: true}),
  (c) => c.chat.completions.create({...italy, messages: user('Tell me a story.'), max_tokens: 60}),
  (c) => c.chat.completions.create({...italy, messages: user('What is the weather in Rome?'), tools, max_tokens: 90}),
  async (c) => gather(await c.chat.completions.create({...italy, stream: true, temperature: 0.8, seed: 9}))
                   .then(({choices}) => choices),
  (c) => c.completions.create({...france, max_tokens: 50, logprobs: 3, echo: true}),
  (c) => c.completions.create({...france, prompt: 'word '.repeat(700), max_tokens: 30}),
  (c) => c.completions.create({...france, prompt: ['The', 'A'], max_tokens: 40, temperature: 1.2, seed: 11}),
];

test('crowd: 8 mixed requests at once, 3 times: each byte for byte as alone', async () => {
  const alone = [];
  for (const request of MIXED) alone.push(nameless(await request(client)));
  for (let round = 0; round < 3; ++round) {
    const order = MIXED.map((_, i) => (i * 3 + round) % MIXED.length);
    const patient = main.client({maxRetries: 10});
    const replies = await Promise.all(order.map((i) => MIXED[i](patient)));
    for (const [at, i] of order.entries()) {
      assert.equal(nameless(replies[at]), alone[i], `request ${i} of round ${round}`);
    }
  }
});

test('crowd: requests that are left or refused do not change the others\' replies', async () => {
  const alone = nameless(await client.chat.completions.create(italy));
  const good = [];
  for (let i = 0; i < 6; ++i) {
    const leave = new AbortController();
    const left = client.completions.create(endless, {signal: leave.signal}).catch(() => null);
    const bad = client.chat.completions.create({...italy, temperature: 'hot'}).catch(() => null);
    good.push(client.chat.completions.create(italy));
    await new Promise((resolve) => setTimeout(resolve, 30));
    leave.abort();
    await Promise.all([left, bad]);
  }
  for (const reply of await Promise.all(good)) assert.equal(nameless(reply), alone);
  await main.idle();
});
