"""What is wrong with a folder of documents, where, and what to do: one line for a person to read."""

from __future__ import annotations

from dataclasses import dataclass

from loupe.errors import DatasetError


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake in one file; `line` counts from 1, 0 means the file as a whole."""

    file: str
    message: str
    line: int = 0
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" + (f" ({self.hint})" if self.hint else "")

    @property
    def place(self) -> str:
        """`file:line`, as editors and terminals link it."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def error(self) -> DatasetError:
        """The same as an exception."""
        return DatasetError(f"{self.place}: {self.message}", hint=self.hint)
