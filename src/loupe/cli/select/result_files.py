"""Where the results of `loupe select` go: to the terminal first, then into files, if they were asked for."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from loupe.cli.select.select_options import Flags
from loupe.cli.shared.output import as_json, say, tables
from loupe.errors import LoupeError, UsageError, cannot_write, is_refusal
from loupe.files.foreign import real_path
from loupe.typed import encode_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loupe.cli.select.ranked_tables import Ranked
    from loupe.studies.select.assessment import Assessment
    from loupe.studies.select.saved_runs import SavedRuns


#: `--json` without a file.
STANDARD_OUTPUT = Path("-")


def check_targets(flags: Flags) -> None:
    """Raise UsageError where a result could not be written in the end: hours of answers would be lost."""
    if flags.json and flags.json != STANDARD_OUTPUT:
        if flags.json.is_dir():
            raise UsageError(f"--json {flags.json} is a folder", hint=f"--json {flags.json / 'selection.json'}")
        if real_path(flags.json.parent) in (real_path(flags.positive), real_path(flags.negative)):
            raise UsageError(
                f"--json {flags.json} is in the folder of documents, which is reserved for their ground truth",
                hint=f"--json {flags.json.name}",
            )
        _check_folder(flags.json.parent, f"--json {flags.json}")
    if flags.save:
        _check_folder(flags.runs, f"--runs {flags.runs}")


def _check_folder(folder: Path, flag: str) -> None:
    try:
        # It is made when there is something to write: until then, what it will stand in says whether it can be.
        there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        if is_refusal(error):
            raise cannot_write(flag, error) from None
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"{flag} cannot be written: {why}", hint="name another place") from None


@dataclass(slots=True)
class Results:
    """Shows and keeps what is finished. What cannot be written is said, and is an error only at the end of all."""

    flags: Flags
    _done: list[Ranked] = field(default_factory=list)
    _trouble: LoupeError | None = None

    def keep(self, runs: SavedRuns | None, assessment: Assessment) -> None:
        """Keep the run of a model that has ended."""
        with self._goes_on():
            path = runs.save(assessment) if runs else None
            if path:
                say(f"saved in {path}")
            elif runs:
                say(f"not saved: {assessment.model.id} ({assessment.status}: no requests were sent)")

    def show(self, ranked: Ranked) -> None:
        """A phase: its tables, then all phases so far as a file; on standard output one document, at the end."""
        from loupe.cli.select.ranked_tables import sections
        from loupe.files.folder import write_file

        self._done.append(ranked)
        if self.flags.json != STANDARD_OUTPUT:
            tables(sections(ranked), plain=self.flags.plain)
        if self.flags.json and self.flags.json != STANDARD_OUTPUT:
            document = encode_json(self._document(), enc_hook=str)
            with self._goes_on():
                write_file(self.flags.json, msgspec.json.format(document, indent=2) + b"\n")

    def print_document(self) -> None:
        """What is finished, on standard output where `--json` named no file."""
        if self._done and self.flags.json == STANDARD_OUTPUT:
            as_json(self._document())

    def _document(self) -> dict[str, Any]:
        from loupe.cli.select.ranked_tables import json_document

        return {"phases": [json_document(each) for each in self._done]}

    def end(self) -> bool:
        """Whether each phase has a model that came to the end. Raises what went wrong on the way."""
        if self._trouble:
            raise self._trouble
        return all(any(each.position is not None for each in one.standings) for one in self._done)

    @contextmanager
    def _goes_on(self) -> Iterator[None]:
        try:
            yield
        except (OSError, LoupeError) as error:
            if not isinstance(error, LoupeError):
                error = cannot_write(error.filename or "the results", error)
            self._trouble = self._trouble or error
            say(f"not saved: {error.message}")
