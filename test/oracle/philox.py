"""The random numbers of src/base/random.{h,cpp}, written once more in numpy: tokens and weights of a
run without the program that is under test. Every function gives the same bits as its C++ namesake."""

import math

import numpy as np

STREAM_WEIGHTS = 1
STREAM_TOKENS = 2
STREAM_DROPOUT = 3
STREAM_MASKING = 6


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., SC11): counter is four arrays of 32-bit words, key 64 bits."""
    mask = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    c = [np.asarray(word, dtype=np.uint64) for word in counter]
    k0, k1 = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c[0]
        p1 = np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> shift) ^ c[1] ^ np.uint64(k0), p1 & mask,
             (p0 >> shift) ^ c[3] ^ np.uint64(k1), p0 & mask]
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def random_words(seed, stream, instance, first, count):
    """Words first .. first + count - 1 of a stream: uint64 array holding 32-bit values."""
    blocks = np.arange(first // 4, (first + count + 3) // 4, dtype=np.uint64)
    zero = np.zeros_like(blocks)
    words = philox([blocks & np.uint64(0xFFFFFFFF), blocks >> np.uint64(32),
                    zero + np.uint64(instance), zero + np.uint64(stream)], seed)
    start = first - first // 4 * 4
    return np.stack(words, axis=1).reshape(-1)[start:start + count]


def octaves(vocab_size):
    """First id and number of ids of each octave (src/data/markov_chain.h)."""
    begins = [2**j - 1 for j in range(vocab_size.bit_length()) if 2**j - 1 < vocab_size]
    return [(begin, min(begin + 1, vocab_size - begin)) for begin in begins]


def successors(vocab_size):
    """Behind each id, with probability 3/4."""
    behind = []
    for begin, size in octaves(vocab_size):
        step = (size * 618 // 1000) | 1
        behind += [begin + (i + step) % size for i in range(size)]
    return behind


def entropies(vocab_size):
    """Nats of an id alone and behind another, from the matrix of all probabilities."""
    f = np.concatenate([np.full(size, math.log2((begin + size + 1) / (begin + 1)) / size)
                        for begin, size in octaves(vocab_size)]) / math.log2(vocab_size + 1)
    matrix = np.tile(f / 4, (vocab_size, 1))
    matrix[np.arange(vocab_size), successors(vocab_size)] += 0.75
    assert np.abs(f @ matrix - f).max() < 1e-15, "frequencies do not stay"
    return -(f * np.log(f)).sum(), -(f[:, None] * matrix * np.log(matrix)).sum()


def markov_tokens(seed, sequence, T, vocab_size):
    """The T + 1 tokens of a sequence (src/data/token_source.cpp)."""
    words = random_words(seed, STREAM_TOKENS, 0, 2 * sequence * (T + 1), 2 * (T + 1))
    groups, behind, tokens = octaves(vocab_size), successors(vocab_size), []
    for octave_word, place_word in words.reshape(-1, 2).tolist():
        if tokens and octave_word < 3 * 2**30:
            tokens.append(behind[tokens[-1]])
            continue
        if tokens:
            octave_word = (octave_word - 3 * 2**30) * 4
        begin, size = groups[int(octave_word / 2**32 * math.log2(vocab_size + 1))]
        tokens.append(begin + (place_word * size >> 32))
    return np.array(tokens, dtype=np.int64)


def uniform_tokens(seed, first, count, vocab_size):
    """Tokens at global positions first .. first + count - 1 (src/data/token_source.cpp)."""
    words = random_words(seed, STREAM_TOKENS, 0, first, count)
    return ((words * np.uint64(vocab_size)) >> np.uint64(32)).astype(np.int64)


def uniform(words):
    """uniform_of: float32 in (0, 1)."""
    return ((words >> np.uint64(9)).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-23)


def dropout_factors(rate, seed, instance, first, count):
    """1 / (1 - rate) where an element is kept, 0 where it is dropped (src/device/dropout.h)."""
    kept = uniform(random_words(seed, STREAM_DROPOUT, instance, first, count)).astype(float) >= rate
    return np.where(kept, 1 / (1 - rate), 0.0)


def _log(u):
    """log_of: float32, |relative error| < 1e-7."""
    f = np.float32
    bits = u.view(np.uint32)
    shifted = bits - np.uint32(0x3F3504F3)
    exponent = shifted.view(np.int32) >> np.int32(23)
    m = ((shifted & np.uint32(0x007FFFFF)) + np.uint32(0x3F3504F3)).view(np.float32)
    z = (m - f(1)) / (m + f(1))
    z2 = z * z
    series = np.full_like(z, f(2) / f(9))
    for term in (f(2) / f(7), f(2) / f(5), f(2) / f(3), f(2)):
        series = series * z2 + term
    return exponent.astype(np.float32) * f(0.69314718056) + series * z


def _sincos_turn(u):
    """sincos_turn: sin and cos of 2 pi u in float32."""
    f = np.float32
    turns = f(4) * u
    quadrant = (turns + f(0.5)).astype(np.int32)
    x = (turns - quadrant.astype(np.float32)) * f(1.57079632679)
    x2 = x * x
    s = np.full_like(x, f(1) / f(362880))
    for term in (-(f(1) / f(5040)), f(1) / f(120), -(f(1) / f(6)), f(1)):
        s = s * x2 + term
    s = s * x
    c = np.full_like(x, f(1) / f(40320))
    for term in (-(f(1) / f(720)), f(1) / f(24), -f(0.5), f(1)):
        c = c * x2 + term
    swap = (quadrant & 1) != 0
    sine, cosine = np.where(swap, c, s), np.where(swap, s, c)
    return (np.where((quadrant & 2) != 0, -sine, sine),
            np.where(((quadrant + 1) & 2) != 0, -cosine, cosine))


def normal(count, seed, stream, instance, std):
    """fill_normal from element 0: `count` float32 normal numbers of standard deviation `std`."""
    words = random_words(seed, stream, instance, 0, (count + 1) // 2 * 2)
    u = uniform(words).reshape(-1, 2)
    radius = np.float32(std) * np.sqrt(np.float32(-2) * _log(np.ascontiguousarray(u[:, 0])))
    sine, cosine = _sincos_turn(np.ascontiguousarray(u[:, 1]))
    return np.stack([radius * cosine, radius * sine], axis=1).reshape(-1)[:count]
