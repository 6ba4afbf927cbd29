"""The generated weights of docs/FORMAT.md 2.2 in numpy: the same bytes as src/format/generated_weights.cpp.

    generated.py NAME DTYPE SHAPE SEED [OFFSET BYTES]    prints the SHA-256 of those bytes of the tensor

SHAPE as 3072,1792. Without OFFSET and BYTES the whole tensor.
"""
import hashlib
import sys

import numpy as np

U64 = np.uint64
NORMAL_VALUES, CHUNK, LARGEST = 1 << 19, 64, 181617
BLOCK, ROW_PIECE, COMMON_PIECES = 4096, 512, 1
MAGNITUDES = np.repeat(np.arange(8), [27, 53, 47, 40, 43, 31, 13, 2]).astype(np.uint8)
ELEMENTS = [  # ending, base, amplitude, cubed: the first that fits
    ("norm.weight", 1.0, 0.25, False),
    ("A_log", 0.0, 1.0, False),
    ("dt_bias", -4.0, 2.0, False),
    ("conv1d.weight", 0.0, 0.75, False),
    ("e_score_correction_bias", 0.0, 0.25, True),
    ("norm0.weight", 1.0, 0.25, False),
    ("norm1.weight", 1.0, 0.25, False),
]
ITEM_BYTES = {"BF16": 2, "F32": 4, "U8": 1}


def mix(x):
    x = np.asarray(x, U64)
    with np.errstate(over="ignore"):
        x = (x ^ (x >> U64(30))) * U64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> U64(27))) * U64(0x94D049BB133111EB)
        return x ^ (x >> U64(31))


def draw(key, index):
    with np.errstate(over="ignore"):
        return mix(U64(key) + (np.asarray(index, U64) + U64(1)) * U64(0x9E3779B97F4A7C15))


def key_of(name, seed):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return int(mix(U64(h ^ int(mix(U64(seed))))))


def round_bf16(a):
    bits = np.ascontiguousarray(a, "<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def half_octaves(fan_in):
    return ((2 * fan_in * fan_in).bit_length() - 1) // 2


class GeneratedWeights:
    def __init__(self, seed):
        self.seed, self.tables = seed, {}

    def table(self, kind, number):
        """Bytes of a table with its begin repeated at its end."""
        if (kind, number) not in self.tables:
            raw = {"normal": self.normal, "codes": self.codes, "scales": self.scales}[kind](number).view(np.uint8)
            self.tables[kind, number] = np.concatenate([raw, raw[:BLOCK]])
        return self.tables[kind, number]

    def normal(self, h):
        key = key_of("#normal", self.seed)
        r = draw(key, np.arange(NORMAL_VALUES))
        total = sum(((r >> U64(16 * i)) & U64(0xFFFF)).astype(np.int64) for i in range(4))
        v = np.clip(2 * total - 262139, -LARGEST, LARGEST)
        chunks = np.arange(NORMAL_VALUES // CHUNK)
        r = draw(key, NORMAL_VALUES + chunks)
        v[chunks * CHUNK + (r % U64(CHUNK)).astype(np.int64)] = np.where(r >> U64(63), LARGEST, -LARGEST)
        unit = np.float32(14529495 if h % 2 == 0 else 10273905)
        return round_bf16(v.astype(np.float32) * np.ldexp(unit, -40 - h // 2))

    def codes(self, _):
        r = draw(key_of("#codes", self.seed), np.arange(1 << 20))

        def nibble(at):
            return MAGNITUDES[((r >> U64(at)) & U64(255)).astype(int)] | ((r >> U64(at + 8)) & U64(1)).astype(np.uint8) << 3
        return nibble(9) << 4 | nibble(0)

    def scales(self, byte):
        r = draw(key_of("#scales", self.seed), np.arange(1 << 16)) >> U64(60)
        return (byte + np.where(r == 0, -1, np.where(r == 1, 1, 0))).astype(np.uint8)

    def bytes(self, name, dtype, shape, offset=0, count=None):
        """Bytes [offset, offset + count) of the tensor as uint8."""
        if count is None:
            count = int(np.prod(shape)) * ITEM_BYTES[dtype] - offset
        key = key_of(name, self.seed)
        recipe = next((e for e in ELEMENTS if name.endswith(e[0])), None)
        if recipe and dtype != "U8":
            return self.elements(key, recipe, dtype, offset, count)
        if dtype == "U8":
            packed = name.endswith("weight_packed")
            assert packed or name.endswith("weight_scale"), name
            scale = 127 - (half_octaves(shape[-1] * 32) + 1) // 2
            table, place = self.table("codes", 0) if packed else self.table("scales", scale), 64
        else:
            assert dtype == "BF16", name
            rows = name.endswith("embed_tokens.weight")
            table, place = self.table("normal", 0 if rows else half_octaves(shape[-1])), 2 * CHUNK
            if rows:
                return self.rows(table, place, key, shape[-1] * 2, offset, count)
        first, last = offset // BLOCK, (offset + count - 1) // BLOCK
        pieces = self.pieces(table, place, key, np.arange(first, last + 1), BLOCK).reshape(-1)
        return pieces[offset - first * BLOCK:][:count]

    @staticmethod
    def pieces(table, place, key, index, length):
        places = (len(table) - BLOCK) // place
        begin = (draw(key, index) & U64(places - 1)).astype(np.int64) * place
        return table[begin[:, None] + np.arange(length)]

    def rows(self, table, place, key, row_bytes, offset, count):
        first, last = offset // row_bytes, (offset + count - 1) // row_bytes
        number = np.arange(-(-row_bytes // ROW_PIECE))
        out = []
        for row in range(first, last + 1):
            index = np.where(number % 4 < COMMON_PIECES, number, (row + 1 << 20) | number)
            out.append(self.pieces(table, place, key, index, ROW_PIECE).reshape(-1)[:row_bytes])
        return np.concatenate(out)[offset - first * row_bytes:][:count]

    @staticmethod
    def elements(key, recipe, dtype, offset, count):
        name, base, amplitude, cubed = recipe
        width = ITEM_BYTES[dtype]
        first, last = offset // width, (offset + count - 1) // width
        index = np.arange(first, last + 1)
        u = ((draw(key, index) >> U64(40)).astype(np.int64) - (1 << 23)).astype(np.float32) * np.float32(2.0 ** -23)
        value = np.float32(base) + np.float32(amplitude) * (u * u * u if cubed else u)
        if name == "A_log":
            value[index >= 96] = 0
        raw = (value.astype("<f4") if dtype == "F32" else round_bf16(value)).view(np.uint8)
        return raw[offset - first * width:][:count]


if __name__ == "__main__":
    name, dtype, shape, seed = sys.argv[1:5]
    made = GeneratedWeights(int(seed)).bytes(name, dtype, [int(d) for d in shape.split(",")],
                                             *(int(a) for a in sys.argv[5:7]))
    print(hashlib.sha256(made.tobytes()).hexdigest())
