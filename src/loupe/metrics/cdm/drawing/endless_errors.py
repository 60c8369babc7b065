r"""What TeX is answered at its errors, so that one that it reports for ever does not end the run.

Alone, TeX gives up at 100 errors in one paragraph, and makes no page. In an alignment that is broken there are two ways
to them, both of primitive commands alone, with no paragraph ended in between: TeX inserts what it then refuses, and is
where it was. That such a pair was reported 100 times is proof enough, so a run that others share says so in its log and
is helped out: TeX counts braces in a cell, and a brace in a condition that is false changes the count only (The
TeXbook, appendix D). A known formula after it shows whether all is as it was.
"""

from __future__ import annotations

import re
from typing import Final

#: At so many errors TeX gives up; where they are known to be endless, fewer tell the same of the next pair.
_MOST: Final = 100
_FEW: Final = 4
#: TeX counts one or two braces too many: at `&` or `\cr`, in mathematics of its own and in the cell.
_IN_MATHEMATICS: Final = {"Missing } inserted.", "Extra }, or forgotten $."}
_IN_CELL: Final = {"Missing } inserted.", "Missing \\cr inserted."}
#: It counts more than two too many or too few.
_FAR: Final = {"Misplaced \\cr.", "Missing \\cr inserted."}
_UP: Final = r"\iffalse{\fi"
_DOWN: Final = r"\iffalse}\fi"
#: As nothing says which, one way is tried, and then further the other.
_TURNS: Final = (_DOWN,) * 8 + (_UP,) * 24 + (_DOWN,) * 64
_ERROR: Final = re.compile(r"^! (.*?) *$", re.MULTILINE)
_PROMPT: Final = "\n? "
#: TeX asks for another file, or has come to the end of this one.
_LAST: Final = ("file name: ", "\n*")
_SHIPPED: Final = re.compile(r"\[\d+")


def would_give_up(log: str) -> bool:
    """Whether this part of a log has so many errors that TeX, where nobody answers, may give up."""
    return len(_ERROR.findall(log)) >= _MOST


def is_endless(log: str) -> bool:
    """Whether this part of a log ends with so many errors of such a pair that TeX gives up."""
    return bool(_endless_pair(_ERROR.findall(log), _MOST))


def _endless_pair(errors: list[str], times: int) -> set[str]:
    """The pair of which the last errors are, so many times; an empty set where they are not."""
    last = errors[-times:]
    pair = set(last[-2:])
    alternating = len(last) == times and last == last[-2:] * (times // 2)
    return pair if alternating and pair in (_IN_MATHEMATICS, _IN_CELL, _FAR) else set()


class Helper:
    """Answers to TeX in one run: it goes on, until errors are endless. `mark` is the command that logs it."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._errors: list[str] = []
        self._is_endless = False
        self._turns = 0

    def __call__(self, said: str) -> str | None:
        """The answer; "" where TeX does not ask yet, None where there is none."""
        if not said.endswith(_PROMPT):
            return None if said.endswith(_LAST) else ""
        if _SHIPPED.search(said):
            self._errors, self._is_endless, self._turns = [], False, 0
        self._errors += _ERROR.findall(said)[-1:]
        pair = _endless_pair(self._errors, _FEW if self._is_endless else _MOST)
        if pair:
            mark = "" if self._is_endless else self._mark
            self._is_endless = True
            return f"i{mark}{self._way_out(pair)}\n"
        # Endless in another way, or beyond help: let TeX give up.
        return "q\n" if len(self._errors) > 4 * _MOST else "\n"

    def _way_out(self, pair: set[str]) -> str:
        if pair == _FAR:
            self._turns += 1
            return _TURNS[self._turns % len(_TURNS)]
        return _DOWN if pair == _IN_CELL else _UP * 3
