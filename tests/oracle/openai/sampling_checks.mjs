// Draws: seeds, temperature, penalties, biases.
import assert from 'node:assert/strict';
import test from 'node:test';

import {client, END_TOKEN, france, tokenize} from './server.mjs';

const long = {...france, prompt: 'The', max_tokens: 40, logit_bias: {[END_TOKEN]: -100}};
const text = async (more) => (await client.completions.create({...long, ...more})).choices[0].text;
const idOf = async (word) => {
  const {tokens} = await tokenize({content: word});
  assert.equal(tokens.length, 1);
  return tokens[0];
};

test('sampling: the same seed gives the same text, another seed another', async () => {
  const draw = (seed) => text({temperature: 1, seed});
  const one = await draw(7);
  assert.equal(await draw(7), one);
  assert.notEqual(await draw(8), one);
});

test('sampling: the choices of one request differ, and are the same again', async () => {
  const fields = {...long, temperature: 1, seed: 7, n: 3};
  const texts = async () => (await client.completions.create(fields)).choices.map((c) => c.text);
  const made = await texts();
  assert.equal(new Set(made).size, 3);
  assert.deepEqual(await texts(), made);
});

test('sampling: without a seed two draws differ', async () => {
  assert.notEqual(await text({temperature: 1}), await text({temperature: 1}));
});

test('sampling: a tiny top_p is greedy at any temperature', async () => {
  const greedy = await text({temperature: 0});
  assert.equal(await text({temperature: 2, top_p: 1e-6}), greedy);
  assert.equal(await text({temperature: 2, top_p: 0}), greedy);
  assert.notEqual(await text({temperature: 2, seed: 1}), greedy);
});

test('sampling: logit_bias -100 bans a token', async () => {
  const paris = await idOf(' Paris');
  const made = async (logit_bias) =>
      (await client.completions.create({...france, max_tokens: 4, logit_bias})).choices[0].text;
  assert.match(await made(undefined), /^ Paris/);
  assert.doesNotMatch(await made({[paris]: -100}), / Paris/);
});

test('sampling: logit_bias 100 forces a token', async () => {
  const rome = await idOf(' Rome');
  const reply = await client.completions.create({...france, max_tokens: 3, logit_bias: {[rome]: 100}});
  assert.equal(reply.choices[0].text, ' Rome Rome Rome');
});

test('sampling: penalties hold back what was said', async () => {
  const repeats = (made) => {
    const words = made.split(/\s+/);
    return words.length - new Set(words).size;
  };
  const plain = repeats(await text({temperature: 0}));
  assert.ok(plain > 0);
  assert.ok(repeats(await text({temperature: 0, frequency_penalty: 2})) < plain);
  // Presence counts once: enough where the model hesitates, and both differ from plain.
  assert.notEqual(await text({presence_penalty: 2}), await text({}));
});
