"""Repetition loops: an engine that wrote the same thing until its token limit.

Protocol: docs/protocols/engines.md#repetition (thresholds of the engines' own clean-up code). A flag only; no text
changes. A loop is any of: a unit of 10..n/10 characters at least 10 times in a row, anywhere; one line that makes up at
least 80 % of at least 10 non-empty lines; an end that is one unit of at least 8 characters, at least 5 times, over more
than half of the text. Where a unit starts does not matter, so a loop cut off in the middle is found, too. Rulers and
dot leaders of 100 signs are loops by this rule.
Bounds: a look at every 81st place proves that ordinary text has no loop, 0.02 ms for 2,000 characters. Where it does
not, n log n by comparing hash values of blocks (checked exactly before anything is reported): 1 ms for a page, 0.2 s
for 1 MB of ordinary text, 2 s for the worst 1 MB we could think of. Memory is about 90 bytes for each character, so of
a text of more than 250,000 characters pieces of that length are looked at, one after the other: up to eight, spread
evenly from its start to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from loupe.metrics.arguments import check_texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_RUN_UNIT, MIN_RUN_REPEATS = 10, 10
MIN_LINES, LINE_SHARE = 10, 0.8
MIN_TAIL_UNIT, MIN_TAIL_REPEATS = 8, 5
#: Characters that are looked at together; no page is as long. Of a longer text, so many such pieces are looked at.
LONGEST, MOST_PIECES = 250_000, 8
#: Of longer texts, and after so many blocks that do come again, the look costs more than it saves.
_WORTH_A_LOOK, _MOST_LOOKS = 20_000, 64
#: Odd, so that it has an inverse modulo 2^64.
_BASE = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Loop:
    """The text that is repeated: `count` whole units in a row (`run`), as lines anywhere (`line`), or up to the end
    (`tail`).
    """

    kind: Literal["run", "line", "tail"]
    unit: str
    count: int


def find_loop(text: str) -> Loop | None:
    """Return the repetition loop of a text, or None: an engine that wrote the same thing until its token limit.

    The result has `kind`, `unit` (what is repeated) and `count` (whole units): "run" is a unit of 10..n/10 characters
    ten times in a row, "line" a line that makes up 80 % of at least ten, "tail" an end of five units of 8 characters or
    more that is half of the text. White space around the text is ignored. Source: docs/protocols/engines.md#repetition.

    >>> find_loop("Invoice No. 12. " + "Thank you for your visit. " * 40)
    Loop(kind='run', unit='. Thank you for your visit', count=40)
    >>> find_loop("Thank you for your visit.") is None
    True
    """
    check_texts(text=text)
    stripped = text.strip()
    if len(stripped) > LONGEST:
        count = min(-(-len(stripped) // LONGEST), MOST_PIECES)
        starts = [(len(stripped) - LONGEST) * number // (count - 1) for number in range(count)]
        pieces = (stripped[start : start + LONGEST] for start in starts)
        return next((loop for piece in pieces if (loop := find_loop(piece))), None)
    if len(stripped) < MIN_TAIL_UNIT * MIN_TAIL_REPEATS:
        return _repeated_line(stripped)
    if not (_may_hold_run(stripped) or _may_end_in_loop(stripped)):
        return _repeated_line(stripped)
    hashed = _HashedText(stripped)
    return _run(hashed) or _repeated_line(stripped) or _tail(hashed)


@dataclass(frozen=True, slots=True)
class Run:
    """A unit that stands at least 10 times in a row: where the first one begins, and how long it is."""

    start: int
    period: int


def first_run(text: str) -> Run | None:
    """Of all units of 10..n/10 characters that stand at least 10 times in a row the leftmost, there the shortest."""
    if not _may_hold_run(text):
        return None
    hashed = _HashedText(text)
    nearest = len(text), 0
    for first, last, longest in _places_of_runs(hashed):
        for period in range(MIN_RUN_UNIT, longest + 1):
            if nearest[1] and not _may_begin_before(hashed, first, nearest[0], period):
                continue
            begin = _start_of_run(hashed, first, min(last, nearest[0] + MIN_RUN_REPEATS * period), period)
            if begin is not None:
                nearest = min(nearest, (begin, period))
    return Run(*nearest) if nearest[1] else None


def _may_begin_before(hashed: _HashedText, first: int, place: int, period: int) -> bool:
    """True if ten units in a row may begin in first..place-1: what all such runs cover must repeat itself."""
    end = first + (MIN_RUN_REPEATS - 1) * period
    if first >= place or end + period > len(hashed.text):
        return False
    return end < place or hashed.one(place - 1, end) == hashed.one(place - 1 + period, end + period)


def _may_hold_run(text: str) -> bool:
    """False where certainly no unit of 10..n/10 characters stands ten times in a row.

    Ten units of p characters hold 9p - 9 places in a row, 81 or more, whose next 10 characters come again p later; each
    of these has them four more times at that distance, before it or behind it.
    """
    if len(text) < MIN_RUN_UNIT * MIN_RUN_REPEATS:
        return False
    if len(text) > _WORTH_A_LOOK:
        return True
    reach = len(text) // MIN_RUN_REPEATS
    looks = _MOST_LOOKS
    for start in range(0, len(text) - 2 * MIN_RUN_UNIT + 1, (MIN_RUN_REPEATS - 1) * (MIN_RUN_UNIT - 1)):
        end = start + MIN_RUN_UNIT
        gram = text[start:end]
        again = text.find(gram, end, end + reach)
        while again >= 0:
            looks -= 1
            distance = again - start
            if not looks or any(_comes_again(text, gram, start, way) for way in (distance, -distance)):
                return True
            again = text.find(gram, again + 1, end + reach)
    return False


def _may_end_in_loop(text: str) -> bool:
    """False where the text certainly does not end in five units of 8..n/5 characters."""
    if len(text) > _WORTH_A_LOOK:
        return True
    start = end = len(text) - MIN_TAIL_UNIT
    gram = text[start:]
    for _ in range(_MOST_LOOKS):
        before = text.rfind(gram, max(0, start - len(text) // MIN_TAIL_REPEATS), end)
        if before < 0:
            return False
        if _comes_again(text, gram, start, before - start):
            return True
        end = before + MIN_TAIL_UNIT - 1
    return True


def _comes_again(text: str, gram: str, start: int, distance: int) -> bool:
    """True if a block stands at `start` and four more times, at this distance each."""
    return start + 4 * distance >= 0 and all(text.startswith(gram, start + count * distance) for count in range(1, 5))


class _HashedText:
    """A text with prefix hashes, so that equal blocks are found without comparing them."""

    def __init__(self, text: str) -> None:
        import numpy as np

        self.text = text
        self.codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
        size = len(text) + 1
        powers = np.full(size, _BASE, np.uint64)
        inverse = np.full(size, pow(_BASE, -1, 1 << 64), np.uint64)
        powers[0] = inverse[0] = 1
        self.unshift = np.cumprod(inverse)
        self.prefix = np.zeros(size, np.uint64)
        np.cumsum(self.codes * np.cumprod(powers)[:-1], out=self.prefix[1:])

    def block(self, start: NDArray[np.signedinteger[Any]], end: NDArray[np.signedinteger[Any]]) -> NDArray[np.uint64]:
        """Hash values of text[start:end], comparable with each other; arrays of positions."""
        hashes: NDArray[np.uint64] = (self.prefix[end] - self.prefix[start]) * self.unshift[start]
        return hashes

    def one(self, start: int, end: int) -> int:
        """The hash value of text[start:end] alone."""
        return (int(self.prefix[end]) - int(self.prefix[start])) * int(self.unshift[start]) % (1 << 64)


def _run(hashed: _HashedText) -> Loop | None:
    """A unit of 10..n/10 characters that stands at least 10 times in a row."""
    for first, last, longest in _places_of_runs(hashed):
        for period in range(MIN_RUN_UNIT, longest + 1):
            begin = _start_of_run(hashed, first, last, period)
            if begin is not None:
                return _counted("run", hashed.text, begin, period)
    return None


def _places_of_runs(hashed: _HashedText) -> Iterator[tuple[int, int, int]]:
    """Yield where runs may be, from the left: first and last place, and the longest unit that fits."""
    for start, end in _seen_before(hashed):
        # All but the first unit of a run has been seen before, which bounds the unit by the stretch.
        longest = min(len(hashed.text) // MIN_RUN_REPEATS, (end - start) // (MIN_RUN_REPEATS - 1) + 1)
        yield max(0, start - longest), min(len(hashed.text), end + MIN_RUN_UNIT), longest


def _seen_before(hashed: _HashedText) -> list[tuple[int, int]]:
    """Stretches, long enough for a run, of positions whose next 10 characters stood shortly before, too."""
    import numpy as np

    size = len(hashed.text)
    if size < MIN_RUN_UNIT * MIN_RUN_REPEATS:
        return []
    grams = (hashed.prefix[MIN_RUN_UNIT:] - hashed.prefix[:-MIN_RUN_UNIT]) * hashed.unshift[:-MIN_RUN_UNIT]
    order = np.argsort(grams, kind="stable")
    ordered = grams[order]
    repeated = (ordered[1:] == ordered[:-1]) & (np.diff(order) <= size // MIN_RUN_REPEATS)
    seen = np.zeros(grams.size + 2, np.int8)
    seen[order[1:][repeated] + 1] = 1
    edges = np.flatnonzero(np.diff(seen))
    shortest = MIN_RUN_UNIT * (MIN_RUN_REPEATS - 1) - MIN_RUN_UNIT + 1
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= shortest]


def _start_of_run(hashed: _HashedText, first: int, last: int, period: int) -> int | None:
    """Ten units of this length in a row contain nine aligned blocks that are equal; those are looked for first."""
    import numpy as np

    grid = hashed.prefix[first : last + 1 : period]
    blocks = np.diff(grid) * hashed.unshift[first : last + 1 : period][: grid.size - 1]
    equal = (blocks[1:] == blocks[:-1]).tobytes()
    wanted = b"\x01" * (MIN_RUN_REPEATS - 2)
    at = equal.find(wanted)
    while at >= 0:
        low = max(0, first + (at - 1) * period)
        high = min(len(hashed.text), first + (at + MIN_RUN_REPEATS) * period)
        same = (hashed.codes[low : high - period] == hashed.codes[low + period : high]).tobytes()
        begin = int(same.find(b"\x01" * (period * (MIN_RUN_REPEATS - 1))))
        if begin >= 0:
            return int(low + begin)
        at = equal.find(wanted, at + 1)
    return None


def _counted(kind: Literal["run", "tail"], text: str, start: int, period: int) -> Loop:
    unit = text[start : start + period]
    count = 1
    while text.startswith(unit, start + count * period):
        count += 1
    return Loop(kind, unit, count)


def _repeated_line(text: str) -> Loop | None:
    lines = [line for raw in text.splitlines() if (line := raw.strip())]
    if len(lines) < MIN_LINES:
        return None
    line, count = Counter(lines).most_common(1)[0]
    return Loop("line", line, count) if count >= LINE_SHARE * len(lines) else None


def _tail(hashed: _HashedText) -> Loop | None:
    """A unit of at least 8 characters, at least 5 times up to the end and over more than half of the text."""
    import numpy as np

    size = len(hashed.text)
    periods = np.arange(MIN_TAIL_UNIT, size // MIN_TAIL_REPEATS + 1)
    covered = periods * np.maximum(MIN_TAIL_REPEATS, size // (2 * periods) + 1)
    possible = covered <= size
    periods, start = periods[possible], size - covered[possible]
    end = np.full_like(start, size)
    candidates = np.flatnonzero(hashed.block(start, end - periods) == hashed.block(start + periods, end))
    for index in candidates.tolist():
        period, begin = int(periods[index]), int(start[index])
        if hashed.text[begin : size - period] == hashed.text[begin + period :]:
            return _counted("tail", hashed.text, begin, period)
    return None
