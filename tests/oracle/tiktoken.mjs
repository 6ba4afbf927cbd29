// Compares sluice's tokenizer with tiktoken (the original Rust code, as npm's WebAssembly package)
// on every set of strings.mjs and three vocabularies: the bundled model's, o200k_base's, and one of
// all pairs of bytes, whose ids betray almost every boundary between pieces.
//
//   node tiktoken.mjs NODE_MODULES TOKENIZE_LINES [RANDOM_COUNT]
//
// Prints a line for each comparison, and every difference cut down to the shortest string that
// still differs. Exit status 1 when there is one.
import {spawnSync} from 'node:child_process';
import fs from 'node:fs';
import {createRequire} from 'node:module';
import os from 'node:os';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

import {stringsOf} from './strings.mjs';

const ROOT = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const BATCH_CHARS = 4 << 20;
const SHOWN_MAX = 20;

// Spec 6.2, verbatim.
const PATTERN = [
  String.raw`[\p{Han}]+`,
  String
      .raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
  String
      .raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
  String.raw`\p{N}{1,3}`,
  String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*`,
  String.raw`\s*[\r\n]+`,
  String.raw`\s+(?!\S)`,
  String.raw`\s+`,
].join('|');

// Spec 6.4, by characters: tiktoken itself does not cut.
const SLICE_CHARS = 400_000;
const RUN_CHARS = 25_000;
const PY_SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

function partsOf(text) {
  if (text.length <= RUN_CHARS) return [text];
  const chars = [...text];
  const parts = [];
  for (let slice = 0; slice < chars.length; slice += SLICE_CHARS) {
    const end = Math.min(slice + SLICE_CHARS, chars.length);
    let begin = slice;
    let run = 0;
    let wasSpace = PY_SPACE.test(chars[slice]);
    for (let i = slice; i < end; ++i) {
      const isSpace = PY_SPACE.test(chars[i]);
      run = isSpace === wasSpace ? run + 1 : 1;
      wasSpace = isSpace;
      if (run <= RUN_CHARS) continue;
      parts.push(chars.slice(begin, i).join(''));
      begin = i;
      run = 1;
    }
    parts.push(chars.slice(begin, end).join(''));
  }
  return parts;
}

// tokens[rank] is base64.
function tokensOfTiny() {
  const tokens = [];
  const text = fs.readFileSync(path.join(ROOT, 'models/tiny-k3/tiktoken.model'), 'utf8');
  for (const line of text.split('\n').filter(Boolean)) {
    const [token, rank] = line.split(' ');
    tokens[Number(rank)] = token;
  }
  return tokens;
}

function tokensOfO200k(require) {
  const {bpe_ranks: ranks} = require('tiktoken/encoders/o200k_base.json');
  const [mark, first, ...tokens] = ranks.split(' ');
  if (mark !== '!' || first !== '0' || tokens.includes('!')) throw new Error('o200k_base has gaps');
  return tokens;
}

// All bytes, then all pairs in an order that looks random (a multiplication modulo 2^16).
function tokensOfPairs() {
  const tokens = [];
  for (let b = 0; b < 256; ++b) tokens.push(Buffer.from([b]).toString('base64'));
  for (let i = 0; i < 65536; ++i) {
    const pair = (i * 40503 + 12345) % 65536;
    tokens.push(Buffer.from([pair >> 8, pair & 255]).toString('base64'));
  }
  return tokens;
}

// One vocabulary in both tokenizers.
class Both {
  constructor(name, tokens, {Tiktoken, binary, directory}) {
    this.name = name;
    this.binary = binary;
    this.theirs = new Tiktoken(`! 0 ${tokens.join(' ')}`, {}, PATTERN);
    this.model = path.join(directory, `${name}.model`);
    this.config = path.join(directory, `${name}.json`);
    this.input = path.join(directory, 'input');
    this.output = path.join(directory, 'output');
    fs.writeFileSync(this.model, tokens.map((token, rank) => `${token} ${rank}\n`).join(''));
    const controls = ['<|end_of_msg|>', '<|open|>', '<|close|>', '<|sep|>'];
    const entries = controls.map((content, i) => [tokens.length + 2 + i, {content}]);
    const config = {added_tokens_decoder: Object.fromEntries(entries)};
    fs.writeFileSync(this.config, JSON.stringify(config));
  }

  theirIds(text) {
    return partsOf(text).map((part) => this.theirs.encode_ordinary(part).join(' ')).join(' ');
  }

  ourIds(texts) {
    fs.writeFileSync(this.input, texts.map((text) => JSON.stringify(text) + '\n').join(''));
    const stdio = [fs.openSync(this.input, 'r'), fs.openSync(this.output, 'w'), 'inherit'];
    const done = spawnSync(this.binary, [this.model, this.config], {stdio});
    fs.closeSync(stdio[0]);
    fs.closeSync(stdio[1]);
    if (done.status !== 0) throw new Error(`${this.binary} failed`);
    const lines = fs.readFileSync(this.output, 'utf8').split('\n');
    if (lines.length !== texts.length + 1) throw new Error('not a line for every string');
    return lines.slice(0, -1);
  }

  // Those of `texts` on which the two differ, and the number of ids.
  compare(texts) {
    const different = [];
    let ids = 0;
    this.ourIds(texts).forEach((ours, i) => {
      const theirs = this.theirIds(texts[i]);
      ids += theirs === '' ? 0 : theirs.split(' ').length;
      if (ours !== theirs) different.push(texts[i]);
    });
    return {different, ids};
  }

  // Leaves out characters while the two still differ.
  reduce(text) {
    for (;;) {
      const chars = [...text];
      if (chars.length > 2000) return text;
      const shorter = chars.map((_, i) => chars.filter((_, k) => k !== i).join('')).filter(Boolean);
      const [next] = shorter.length ? this.compare(shorter).different : [];
      if (next === undefined) return text;
      text = next;
    }
  }
}

function* batchesOf(texts) {
  let batch = [];
  let chars = 0;
  for (const text of texts) {
    batch.push(text);
    chars += text.length;
    if (chars < BATCH_CHARS) continue;
    yield batch;
    batch = [];
    chars = 0;
  }
  if (batch.length) yield batch;
}

function compareSet(both, set, count) {
  let strings = 0;
  let ids = 0;
  let different = 0;
  for (const batch of batchesOf(stringsOf(set, count))) {
    const found = both.compare(batch);
    strings += batch.length;
    ids += found.ids;
    for (const text of found.different) {
      if (++different > SHOWN_MAX) continue;
      const short = both.reduce(text);
      const ours = both.ourIds([short])[0];
      console.log(
          `differs: ${JSON.stringify(short)} ours ${ours} tiktoken ${both.theirIds(short)}`);
    }
  }
  console.log(`${both.name}/${set}: ${strings} strings, ${ids} ids, ${different} differ`);
  return different;
}

function main([modules, binary, count]) {
  const require = createRequire(path.resolve(modules) + '/');
  const {Tiktoken} = require('tiktoken');
  const manifest = path.join(modules, 'tiktoken', 'package.json');
  const {version} = JSON.parse(fs.readFileSync(manifest, 'utf8'));
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-tiktoken-'));
  console.log(`tiktoken ${version}`);
  try {
    const shared = {Tiktoken, binary, directory};
    const vocabularies = [
      new Both('tiny-k3', tokensOfTiny(), shared),
      new Both('o200k', tokensOfO200k(require), shared),
      new Both('pairs', tokensOfPairs(), shared),
    ];
    let different = 0;
    for (const set of ['chosen', 'random', 'classes', 'codepoints']) {
      for (const both of vocabularies) different += compareSet(both, set, count && Number(count));
    }
    return different === 0 ? 0 : 1;
  } finally {
    fs.rmSync(directory, {recursive: true});
  }
}

process.exitCode = main(process.argv.slice(2));
