"""One run as it was at one look: what was asked, of each answer the little that lists need, all scores, the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from loupe.errors import RunError
from loupe.report.collect import SAMPLE_LIMIT
from loupe.results.groups import Entrant
from loupe.runs.folder import RunFolder
from loupe.runs.places import Places
from loupe.types import FAILED, Prediction, Result, SampleScores

Record = TypeVar("Record", Prediction, SampleScores)

#: Seconds over which the live rate is counted.
_LIVE_SECONDS = 60.0


_LONGEST_ERROR = 300


def one_line(error: str) -> str:
    """An error as lists show it."""
    return " ".join(error[: 4 * _LONGEST_ERROR].split())[:_LONGEST_ERROR]


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer: its class, how long it took, its tokens, when it came, and the error of one that failed."""

    outcome: str
    seconds: float
    input_tokens: int | None
    output_tokens: int | None
    began: float | None
    ended: float | None
    lost: int = 0
    error: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunIndex:
    """A run at one moment; nothing of it changes, so any thread may read it.

    `serial` tells it from a later run in the same folder, `revision` from itself at other moments; `scored` counts how
    often its scores changed; those of a large run stay on the disk. `foreign_rows`: some of them were not made here.
    `state` is `done`, `running`, `stopped` (answers are missing) or `read` (all are there, not scored). `problem` says
    what cannot be read any more of files that could be read before.
    """

    folder: RunFolder
    key: str
    serial: int = 0
    revision: int = 0
    scored: int = 0
    foreign_rows: bool = False
    state: str = "stopped"
    problem: str = ""
    result: Result | None = None
    answers: Mapping[str, Answered] = field(default_factory=dict)
    scores: Mapping[str, SampleScores] = field(default_factory=dict)
    places: Places = field(default_factory=Places)
    score_places: Places = field(default_factory=Places)

    def entrant(self, name: str) -> Entrant:
        """The run as the report's tables take it."""
        return Entrant(
            run=self.folder,
            result=self.result,
            predictions=self.places,
            scores=self.score_places,
            known=self.scores if self.holds_scores else None,
            name=name,
        )

    def prediction_of(self, ident: str) -> Prediction | None:
        """The whole record of one sample. Raises RunError where another one stands there now."""
        place = self.places.get(ident)
        found = self.folder.read_prediction(place) if place else None
        return self._same(found, ident)

    def scores_of(self, ident: str) -> SampleScores | None:
        """All scores of one sample. Raises RunError where others stand there now."""
        place = self.score_places.get(ident)
        found = self.folder.read_scores(place) if place else None
        return self._same(found, ident)

    def _same(self, found: Record | None, ident: str) -> Record | None:
        if found is not None and found.sample != ident:
            raise RunError(f"{self.folder.path} was rewritten")
        return found

    @property
    def is_of_others(self) -> bool:
        """True if the scores came from elsewhere: by the result, or while there is none, by the scores themselves."""
        return self.foreign_rows if self.result is None else not self.result.scored_here

    @property
    def total(self) -> int:
        """How many samples were asked for."""
        return self.folder.info.total or len(self.answers)

    @property
    def is_large(self) -> bool:
        """Whether it has more samples than are shown one by one."""
        return self.folder.info.total > SAMPLE_LIMIT

    @property
    def holds_scores(self) -> bool:
        """Whether `scores` has all of them; of a large run, or one with very many, the rest stays on the disk."""
        return len(self.scores) == len(self.score_places)

    def counts_of(self, ident: str) -> SampleScores | None:
        """The scores of one sample, perhaps without details."""
        return self.scores.get(ident) or self.scores_of(ident)

    @contextmanager
    def reader(self) -> Iterator[Callable[[str], SampleScores | None]]:
        """`counts_of` for many."""
        if self.holds_scores:
            yield self.scores.get
            return
        with self.folder.score_reader() as read:
            yield (
                lambda ident: self._same(read(self.score_places[ident]), ident) if ident in self.score_places else None
            )

    def failed(self) -> int:
        """Samples that ended without an answer."""
        return sum(answer.outcome in FAILED for answer in self.answers.values())

    def rate(self) -> float | None:
        """Answers per second of the last minute; None where none came."""
        now = time.time()
        ended = [one.ended for one in self.answers.values() if one.ended and 0 <= now - one.ended <= _LIVE_SECONDS]
        return len(ended) / min(_LIVE_SECONDS, max(now - min(ended), 1.0)) if ended else None
