// Texts for the tokenizer's oracles, the same on every run: seeded random strings, every short
// string over one character of each class, every code point in several surroundings, and chosen
// texts (prose, code, spec 6.7, long runs, and variations of them). No text holds a surrogate.
//
//   node strings.mjs SET [COUNT]     prints SET (random | classes | codepoints | chosen), one JSON
//                                    string a line; COUNT is that of random (100,000)
import fs from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const ROOT = path.join(HERE, '..', '..');
const RANDOM_COUNT = 100_000;
const CHOSEN_LEAST = 2_000;
const CODE_POINT_END = 0x110000;

// Unicode White_Space, and what Python's isspace() adds to it.
const SPACES = [
  ...'\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000'
];
const SEPARATORS = [...'\x1c\x1d\x1e\x1f'];

// A 32-bit xorshift: the same numbers on every machine.
class Random {
  constructor(seed) {
    this.state = seed >>> 0 || 1;
  }
  below(n) {
    let x = this.state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.state = x >>> 0;
    return this.state % n;
  }
  pick(list) {
    return list[this.below(list.length)];
  }
  range(first, last) {
    return String.fromCodePoint(first + this.below(last - first + 1));
  }
}

const times = (random, most, make) => {
  let text = '';
  for (let n = 1 + random.below(most); n > 0; --n) text += make(random);
  return text;
};

const scalar = (code) => (code >= 0xd800 && code < 0xe000 ? code - 0xd800 + 0x4e00 : code);
const WORDS = [
  'the', 'The', 'THE', 'iPhone', 'McDonald', 'don', 'ITS', 'we', 'x', 'HTTPServer', 'café', 'naïve',
  'straße', 'ŒUVRE', 'ǅ', 'aǅb', 'ﬁn', 'K', 'Å'
];
const TAILS = [
  '\'s',      '\'S', '\'t', '\'T',  '\'re', '\'RE',  '\'Re',    '\'ve',
  '\'VE',     '\'m', '\'M', '\'ll', '\'LL', '\'lL',  '\'d',     '\'D',
  '\'\u017f', '\'r', '\'l', '\'v',  '\'',   '\'\'s', '\u2019s', '\'x'
];
const SYMBOLS = [
  ...'!?.,;:-_/\\|+*=<>()[]{}"\'`~@#$%^&§°±€£¥©®™…–—“”‘’«»•→∀∑√∞≈♠♥✓', '<|open|>', '[BOS]',
  '<|sep|>', '://', '...', '\u200b', '\u200d', '\ufeff', '\u00ad', '\u180e', '\ufffd'
];
const EMOJI = [
  '🙂', '🚀', '👩‍💻', '👍🏿', '🇫🇷', '1️⃣', '☎️', '🏳️‍🌈',
  '👨‍👩‍👧‍👦', '\u{1f9ff}'
];
const HAN_EDGES = [
  ...'々〇〆〡〩⺀㇀㐀䶿一鿿豈\u{16ff0}\u{16fe2}\u{16fe3}\u{20000}\u{2a6df}\u{30000}\u{2f800}ー㊀'
];
const DIGITS = [
  ...'0123456789', '٣', '५', '๗', '０', '９', 'Ⅷ', 'ⅷ', '½', '²', '₃', '⑧', '㊱', '𝟜', '〇', '〣'
];
const SCRIPTS = [
  [0x41, 0x5a],       [0x61, 0x7a],       [0xc0, 0x24f],      [0x250, 0x2ff],    [0x370, 0x3ff],
  [0x400, 0x52f],     [0x531, 0x58f],     [0x591, 0x5f4],     [0x600, 0x6ff],    [0x900, 0x97f],
  [0xe00, 0xe7f],     [0x10a0, 0x10ff],   [0x1100, 0x11ff],   [0x1200, 0x137f],  [0x13a0, 0x13fd],
  [0x1800, 0x18aa],   [0x1c80, 0x1cbf],   [0x1e00, 0x1fff],   [0x2c00, 0x2cff],  [0x3041, 0x30ff],
  [0x4e00, 0x9fff],   [0xa640, 0xa69f],   [0xa720, 0xa7ff],   [0xac00, 0xd7a3],  [0xff00, 0xffef],
  [0x10400, 0x1044f], [0x1d400, 0x1d7ff], [0x1e900, 0x1e95f], [0x20000, 0x2a6df]
];

// What random strings are made of.
const ATOMS = [
  (r) => r.pick(WORDS) + (r.below(3) === 0 ? r.pick(TAILS) : ''),
  (r) => times(
             r, 8,
             () => {
               const [first, last] = r.pick(SCRIPTS.slice(0, 2));
               return r.range(first, last);
             }) +
      (r.below(4) === 0 ? r.pick(TAILS) : ''),
  (r) => {
    const [first, last] = r.pick(SCRIPTS);
    return times(r, 6, () => r.range(first, last));
  },
  (r) => times(r, 3, () => r.pick(SPACES)),
  (r) => times(r, 4, () => r.pick([' ', ' ', ' ', '\n', '\r\n', '\t'])),
  () => ' ',
  () => ' ',
  (r) => r.pick(SEPARATORS),
  (r) => times(r, 7, () => r.range(0x30, 0x39)),
  (r) => times(r, 5, () => r.pick(DIGITS)),
  (r) => times(r, 3, () => r.pick(SYMBOLS)),
  (r) => r.pick(EMOJI),
  (r) => times(r, 3, () => r.range(0x300, 0x36f)),
  (r) => r.pick([
    '\u0903', '\u093e', '\u20dd', '\u20e3', '\u0488', '\ufe0f', '\u{e0101}', '\u1ab0', '\u302a'
  ]),
  (r) => times(r, 5, () => r.range(0x4e00, 0x9fff)),
  (r) => times(r, 3, () => r.pick(HAN_EDGES)),
  (r) => r.pick(TAILS),
  (r) => r.pick(['\u017f', 's\u017f', '\u212a', '\u0130', '\u0131']),
  (r) => String.fromCodePoint(scalar(r.below(0x10000))),
  (r) => String.fromCodePoint(scalar(r.below(CODE_POINT_END))),
  (r) => r.pick(WORDS).repeat(1 + r.below(12)),
];

function* randomStrings(count, seed) {
  const random = new Random(seed);
  for (let i = 0; i < count; ++i)
    yield times(random, i % 10 === 0 ? 60 : 12, (r) => r.pick(ATOMS)(r));
}

// One character of each class that the pattern tells apart, and those of the contractions.
const CLASSES = [...'aAsLǅーあ漢\u03011〇⺀ \n\r\u00a0\x1c!\'\u017f'];

function* classStrings() {
  for (let length = 1; length <= 4; ++length) {
    for (let n = 0; n < CLASSES.length ** length; ++n) {
      let text = '';
      for (let i = 0, rest = n; i < length; ++i, rest = Math.floor(rest / CLASSES.length))
        text += CLASSES[rest % CLASSES.length];
      yield text;
    }
  }
}

// Each in every surrounding where its class decides a boundary.
function* codePointStrings() {
  for (let code = 0; code < CODE_POINT_END; ++code) {
    if (code >= 0xd800 && code < 0xe000) continue;
    const c = String.fromCodePoint(code);
    yield `a${c}B${c}${c} ${c}1${c}漢${c}\n${c}!${c}\t${c}`;
  }
}

const LONG_UNITS = [
  'a', ' ', 'A', '1', '.', '\n', '漢', '🙂', 'é', 'aB', ' a', '\r\n', '\'s', 'the ', '\u0301',
  '\u00a0', '\x1c', 'あ'
];
const LONG_COUNTS = [2, 3, 4, 31, 32, 33, 63, 64, 65, 66, 127, 128, 129, 500, 1000, 4096];
const VERY_LONG_COUNTS = [25_000, 25_001, 50_001];
const VERY_LONG_UNITS = ['a', ' ', '\n'];  // tiktoken's time is quadratic in bytes

function* longRuns() {
  for (const unit of LONG_UNITS) {
    for (const count of LONG_COUNTS) {
      yield unit.repeat(count);
      yield `x${unit.repeat(count)}y`;
    }
  }
  for (const unit of VERY_LONG_UNITS)
    for (const count of VERY_LONG_COUNTS) yield unit.repeat(count);
  yield '🙂'.repeat(25_001);
  yield `${'a'.repeat(24_990)}${' '.repeat(25_010)}b`;
  yield `${'\x1c'.repeat(12_500)}${' '.repeat(12_501)}c`;
  yield 'one two '.repeat(50_000) + 'it\'s';  // cut at 400,000 characters
  yield 'x'.repeat(7) + 'ab 12 '.repeat(70_000);
}

// Strings of a parsed JSON value, at any depth.
function* stringsIn(value) {
  if (typeof value === 'string')
    yield value;
  else if (value && typeof value === 'object')
    for (const part of Object.values(value)) yield* stringsIn(part);
}

const VARIATIONS = [
  (s) => s,
  (s) => s.toUpperCase(),
  (s) => s.toLowerCase(),
  (s) => s.normalize('NFD'),
  (s) => s.normalize('NFKC'),
  (s) => [...s].reverse().join(''),
  (s) => s.replaceAll(' ', '\u00a0'),
  (s) => s.replaceAll(' ', '\r\n'),
  (s) => s.replaceAll(' ', '   '),
  (s) => s.replaceAll(' ', ' \n '),
  (s) => s.replaceAll(' ', ''),
  (s) => [...s].join(' '),
  (s) => [...s].map((c) => c + '\u0301').join(''),
  (s) => [...s].map((c, i) => (i % 5 === 4 ? c + '\'s' : c)).join(''),
  (s) => s + s + s,
  (s) => ` ${s} `,
  (s) => `\n\n${s}\n\n`,
  (s) => s.slice(0, 12).replace(/[\ud800-\udbff]$/, ''),
];

function* chosenStrings() {
  const read = (name) => fs.readFileSync(path.join(ROOT, name), 'utf8');
  const prose = JSON.parse(fs.readFileSync(path.join(HERE, 'prose.json'), 'utf8'));
  for (const text of prose)
    for (const vary of VARIATIONS) yield vary(text);
  for (let i = 0; i < prose.length; ++i) yield prose[i] + prose[(i * 7 + 3) % prose.length];
  yield* stringsIn(JSON.parse(read('models/tiny-k3/goldens.json')).prompts);
  yield* stringsIn(JSON.parse(read('models/tiny-k3/config.json')));
  for (const name
           of ['LICENSE', 'src/text/splitter.cpp', 'src/text/bpe.cpp', 'tools/tidy.py',
               'models/tiny-k3/config.json']) {
    const text = read(name);
    yield text;
    yield* text.split('\n').filter((line) => line !== '');
  }
  for (const text
           of ['Hello, world!', 'Hello\n\nworld  ', 'The capital of France is',
               'The largest planet in our solar system is', 'Привет — café naïve',
               '🙂🚀👩‍💻', ' \x1c a', 'a\u2028b', 'ＡＢＣ 한국어 हिन्दी العربية', ' are',
               'I\'m', '——', '世世'])
    yield text;
  yield* longRuns();
}

export function stringsOf(set, count = RANDOM_COUNT) {
  switch (set) {
    case 'random':
      return randomStrings(count, 20261201);
    case 'classes':
      return classStrings();
    case 'codepoints':
      return codePointStrings();
    case 'chosen': {
      const all = [...chosenStrings()].filter((s) => s !== '');
      if (all.length < CHOSEN_LEAST) throw new Error(`only ${all.length} chosen texts`);
      return all;
    }
    default:
      throw new Error(`no set of strings named ${set}`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  let held = '';
  for (const text of stringsOf(process.argv[2], process.argv[3] && Number(process.argv[3]))) {
    if (/\p{Surrogate}/u.test(text)) throw new Error(`a surrogate in ${JSON.stringify(text)}`);
    held += JSON.stringify(text) + '\n';
    if (held.length > 1 << 20) {
      fs.writeSync(1, held);
      held = '';
    }
  }
  fs.writeSync(1, held);
}
