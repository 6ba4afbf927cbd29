// The end: what the server counted, what it wrote, and how it stops.
import assert from 'node:assert/strict';
import test from 'node:test';

import {client, france, main, OpenAI} from './server.mjs';

test('metrics: requests and tokens were counted, nothing runs', async () => {
  const text = await (await fetch(`${main.url}/metrics`)).text();
  const value = (name) => Number(text.split('\n').find((line) => line.startsWith(`${name} `)).split(' ')[1]);
  assert.ok(value('sluice_requests_total{finish="stop"}') > 40);
  assert.ok(value('sluice_requests_total{finish="cancelled"}') > 5);
  assert.equal(value('sluice_requests_total{finish="error"}'), 0);
  assert.ok(value('sluice_generated_tokens_total') > 1000);
  assert.ok(value('sluice_first_token_seconds_count') > 40);
  assert.equal(value('sluice_requests_running'), 0);
  assert.equal(value('sluice_requests_queued'), 0);
});

test('log: a line for each request, and no word of any prompt', () => {
  assert.match(main.log, /chatcmpl-\w+ stop: prompt 28 new 33 tokens/);
  assert.doesNotMatch(main.log, /capital|weather|Hello/);
});

test('SIGTERM: what runs is finished, new requests are refused, the exit status is 0', async () => {
  const stream = await client.completions.create({...france, max_tokens: 400, stream: true});
  let finish;
  let refused;
  let stopped;
  for await (const {choices: [choice]} of stream) {
    if (!stopped) {
      stopped = main.stop();
      await new Promise((resolve) => setTimeout(resolve, 100));
      refused = client.completions.create(france).then(() => null, (error) => error);
    }
    finish = choice.finish_reason ?? finish;
  }
  assert.ok(['stop', 'length'].includes(finish));
  const error = await refused;
  assert.ok(error instanceof OpenAI.InternalServerError, String(error));
  assert.equal(error.status, 503);
  assert.equal(await stopped, 0);
});
