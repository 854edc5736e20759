"""Mutations that often break parsers: changed sizes, and truncated or exchanged parts."""

import re
import struct
from collections.abc import Callable, Sequence
from random import Random

__all__ = ["mutated"]

HEADER = 512  # half of the random positions are in this number of bytes at the start
NUMBERS = (0, 1, 2, 3, 7, 8, 16, 127, 128, 255, 256, 1000, 4096, 32767, 32768, 65535, 65536)
NUMBERS += (2**20, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
TEXTS = (b"", b"0", b"-1", b"1e999", b"nan", b"inf", b"1.5", b"99999999999999999999", b"\0", b"%d")
TEXTS += (b'"', b"[", b"{", b"null", b"true", b'"\\ud800"', b"\xff\xfe", b"../", b"/dev/zero", b":")
DIGITS = re.compile(rb"\d+")


def mutated(content: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """Apply one or more changes to the content."""
    result = bytearray(content)
    for _ in range(1 + min(int(random.expovariate(0.7)), 12)):
        random.choice(CHANGES)(result, others, random)
    return bytes(result)


def _place(content: bytearray, random: Random) -> int:
    size = len(content)
    if size > HEADER and random.random() < 0.5:
        size = HEADER
    return random.randrange(size) if size else 0


def _flip(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    if content:
        content[_place(content, random)] ^= 1 << random.randrange(8)


def _byte(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    if content:
        content[_place(content, random)] = random.randrange(256)


def _number(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    """Replace one to eight bytes with a number that parsers may mishandle."""
    size = random.choice((1, 2, 4, 8))
    order = random.choice("<>")
    value = random.choice((*NUMBERS, len(content), len(content) - 1, len(content) + 1))
    start = _place(content, random)
    if random.random() < 0.5:
        start -= start % size
    packed = struct.pack(f"{order}Q", value % 2**64)
    content[start : start + size] = packed[:size] if order == "<" else packed[-size:]


def _float(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    value = random.choice((float("nan"), float("inf"), -1.0, 1e300, 5e-324, 0.5))
    kind = random.choice(("<f", ">f", "<d", ">d"))
    start = _place(content, random)
    start -= start % 4
    packed = struct.pack(kind, value if kind[1] == "d" else max(min(value, 3e38), -3e38))
    content[start : start + len(packed)] = packed


def _digits(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    """Replace a number in a text."""
    runs = [match.span() for match in DIGITS.finditer(content, 0, 4096)]
    if runs:
        start, stop = random.choice(runs)
        numbers = (*TEXTS, *(b"%d" % number for number in NUMBERS))
        content[start:stop] = random.choice(numbers)


def _text(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    start = _place(content, random)
    content[start : start + random.randrange(3)] = random.choice(TEXTS)


def _cut(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    del content[_place(content, random) :]


def _delete(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    start = _place(content, random)
    del content[start : start + 1 + int(random.expovariate(0.1))]


def _repeat(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    start = _place(content, random)
    part = bytes(content[start : start + 1 + int(random.expovariate(0.05))])
    content[start:start] = part * random.choice((1, 1, 2, 20))


def _insert(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    start = _place(content, random)
    content[start:start] = random.randbytes(random.randrange(1, 9))


def _fill(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    start = _place(content, random)
    stop = min(len(content), start + random.randrange(1, 65))
    content[start:stop] = bytes([random.choice((0, 255, 1))]) * (stop - start)


def _exchange(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    """Exchange two parts of equal length."""
    size = random.choice((1, 4, 8, 32))
    first, second = sorted((_place(content, random), _place(content, random)))
    if first + size <= second and second + size <= len(content):
        content[first : first + size], content[second : second + size] = (
            content[second : second + size],
            content[first : first + size],
        )


def _splice(content: bytearray, others: Sequence[bytes], random: Random) -> None:
    """Join the start of this file and the end of another."""
    other = random.choice(others)
    place = _place(content, random)
    content[place:] = other[min(place, len(other)) :]


Change = Callable[[bytearray, Sequence[bytes], Random], None]
CHANGES: tuple[Change, ...] = (
    *(_flip, _byte, _number, _number, _number, _float, _digits, _digits, _text, _cut, _delete),
    *(_repeat, _insert, _fill, _exchange, _splice),
)
