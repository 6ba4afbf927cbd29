#!/usr/bin/env python3
"""Writes splits.json, the expected pieces of hand-picked strings, with two
independent means: Python's `regex` module (Debian: python3-regex) running the
vocabulary's own pattern, and Python's str.isspace() for pre-splitting.

  make_splits.py > splits.json"""
import json
import sys

import regex

CASED = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
TAIL = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = regex.compile("(?V1)" + "|".join([
    r"[\p{Han}]+",
    r"[^\r\n\p{L}\p{N}]?" + CASED + "*" + LOWER + "+" + TAIL,
    r"[^\r\n\p{L}\p{N}]?" + CASED + "+" + LOWER + "*" + TAIL,
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+"]))

TEXTS = [
    "", "a", " ", "\n", "\r\n", "  ", " a", "  a", "   a b", "a ", "a  ", "a\n", "a \n b", "\n\n\n", "\n \n  x",
    "Hello, world!", "Hello\n\nworld  ", "The capital of France is", "I'M we're they'LL 1234567",
    "你好，世界！漢字", "Привет — café naïve", "🙂🚀👩‍💻", "Tabs\tand\r\nlines\u00a0end", "a\x1cb", " \x1c a", "a\u2028b",
    "ＡＢＣ 한국어 हिन्दी العربية", "a <|open|> b [BOS] c",
    # case split
    "camelCase", "HTTPServer", "XMLHttpRequest", "iPhone OS", "ALLCAPS lower", "AbCdEf", "ǅungla ǈubav ABCǅ", "ΑΒΓαβγ ЯЗЫКязык", "AªB ABªCD",
    # contractions
    "don't DON'T it's IT'S you'Re we'VE I'll he'D", "x'sy x'S x'l x'll' 'tis ''s", "rock'n'roll", "it'ſ IT'ſ 'ſ", "s' 's 'S", "1's 漢's é's", "a'", "a'r", "a'v e", "don’t",
    # lead characters
    "(hello) [World] {x}", "\thello", "\u00a0word", "_name __init__", "$100 €5", "+a -B", "\u0301a a\u0301 \u0301", "!\u0301A", " \u0301A", "  \u0301",
    # marks and scripts without case
    "e\u0301te\u0301", "A\u0301B\u0301", "हिन्दी", "ไทย ภาษา", "かなカナ漢字かな", "한국어한국", "ـــ", "ʰAʰ", "aːb", "\u0301\u0301AB", "AB\u0301CD",
    # Han of every kind: letters, 々, 〇 (a number), radicals (symbols), marks
    "々々 漢々A", "〇一二 1〇2", "⺀⺁ a⺀", ".⺀漢", " ⺀", "𠀀𠀁x", "𖿰 漢𖿰", "〆ヶ",
    # numbers
    "1", "12", "123", "1234", "1234567890", " 123", "٣٤٥٦", "Ⅷ²½①", "1a2B3", "3.14159", "1,000,000", "½x", "৩৪৫৬",
    # symbols and their newlines
    "...", " ...", "  ...", "!!!\n", "!!!\r\n\r\n x", "a.\n\nb", "->=>", "#!/bin/sh\n", "/* x */\n\t", "*\n*\n", " -\n", "\ufe0f☀️", "☀️ ☁️",
    # white space
    "\t", "\t\t", "\t\tx", " \t x", "x \u3000 y", "\u3000\u3000a", "\u00a0\u00a0", "\u2003\u2003b", "\u0085x", "a\u0085\u0085b", "\x0b\x0cx", "\x1c\x1d\x1e\x1f", " \n\u00a0\n  y", "\r\r\n\n", "  \n  ", "a\u2029\n", "\u200b \u200bx",
    "def f(n):\n    if n <= 1:\n        return 1\n\n\n# end\n", "\ufffd\ufffdx", "\U000e0100a\U000e0100", "\U0010ffff!", "\u0000a\u0000",
]

# Runs of (character, count); parts are the lengths in characters after pre-splitting.
RUNS = [
    [["a", 25000]], [["a", 25001]], [["a", 50001]], [[" ", 25001]], [["🙂", 25001]], [["a", 24999], [" ", 1], ["a", 25001]],
    [["a", 10], [" ", 25002], ["b", 3]], [["\x1c", 25000], [" ", 1]], [["a", 25000], ["\x1c", 25000], ["\u3000", 1]], [["ab ", 133334]], [["ab ", 133333], ["a", 2]],
    [["ab ", 125000], ["c", 25001]], [["ab ", 133000], ["c", 25001]], [["a", 399999], [" ", 30000]],
]


def pre_split(text):
    for begin in range(0, len(text), 400_000):
        piece = text[begin:begin + 400_000]
        start, run, kind = 0, 0, None
        for i, char in enumerate(piece):
            run = run + 1 if char.isspace() == kind else 1
            kind = char.isspace()
            if run > 25_000:
                yield i - start
                start, run = i, 1
        yield len(piece) - start


def main():
    splits = [{"text": text, "pieces": [m.group() for m in PATTERN.finditer(text)]} for text in TEXTS]
    for split in splits:
        assert "".join(split["pieces"]) == split["text"]
    cuts = [{"runs": runs, "parts": list(pre_split("".join(c * n for c, n in runs)))} for runs in RUNS]
    # Escaped, since editors show many of these characters badly.
    lines = [json.dumps(row) for row in splits], [json.dumps(row) for row in cuts]
    sys.stdout.write('{"splits": [\n%s\n], "cuts": [\n%s\n]}\n' % tuple(",\n".join(part) for part in lines))


if __name__ == "__main__":
    main()
