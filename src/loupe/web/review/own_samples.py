"""The lines of a folder's samples.jsonl as entries: a form for each task, and drafts of several engines beside it.

Format: docs/own-data.md. The status is that of `truth`; a decision notes who made it and when.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

from loupe.benchmarks.folders.own.config import FolderConfig
from loupe.benchmarks.folders.own.rows import (
    KEYS,
    WHOLE,
    Row,
    TruthState,
    file_name,
    page_source,
    paths_of,
    read_row,
    truth_mistakes,
    truth_state,
)
from loupe.errors import DatasetError
from loupe.types import DocumentPage
from loupe.web.review.entries import Change, Control, Draft, Entry, Field, FieldError, Status, Truth, Words, hint_by
from loupe.web.review.line_file import with_values

WORDS = Words(accept="Accept", refuse="Skip", refused="skipped", key="s")
_STATUS: dict[str, Status] = {"draft": "unreviewed", "verified": "verified", "skipped": "rejected"}
_WRITTEN = {status: name for name, status in _STATUS.items()}
_CONTROLS: dict[str, tuple[Control, str]] = {
    "text": ("prose", "Text of the page, in reading order"),
    "markdown": ("markdown", "Markdown"),
    "facts": ("markdown", "Transcript in Markdown; headers and footers in <header>…</header>"),
    "table": ("table", "Table"),
    "formula": ("math", "LaTeX"),
    "question": ("list", "Accepted answers, one a line"),
    "class": ("line", "Label"),
}
_SAYS = {
    "fields": "The value in the document; empty if it has none.",
    "table": "The table of the page.",
    "class": "The kind of document.",
}
_SECTIONS = ("The engines differ", "One draft", "The engines agree", "No draft", "Written by hand")
#: Up to so many labels are all shown at once.
_MOST_BUTTONS = 12
_TAG = re.compile(r"<[^<>]*>?")
#: Longer texts are not looked for on the page.
_LONGEST_PHRASE = 300


def own_samples(config: FolderConfig, *, by: str) -> Truth:
    """The truth of a folder with these settings, decided by this person."""
    samples = _Samples(config, by)
    return Truth(
        title=config.title or "Your own documents",
        noun="sample",
        kinds=(),
        read=samples.read,
        changed=samples.changed,
        words=WORDS,
        hint=hint_by(config.date_order),
        by_id=True,
        saves_typing=True,
    )


@dataclass(frozen=True, slots=True)
class _Samples:
    config: FolderConfig
    by: str

    def read(self, line: str) -> Entry:
        """The sample in the line. Raises DatasetError if there is none."""
        row = self._row(line)
        values = row.values
        state = _state(values)
        pages = tuple(_page(path) for path in paths_of(values) or ())
        fields = tuple(self._fields(values, state))
        turn = _turn(values, state)
        return Entry(
            id=_text(values.get("id", "")),
            kind=self._task(values),
            document=pages[0][0] if pages else "",
            page=pages[0][1] if pages else 0,
            more_pages=pages[1:],
            source=_text(values.get("text", "")),
            status=_STATUS[state.status],
            says=_text(values.get("prompt", "")) or _SAYS.get(self._task(values), ""),
            summary=_summary(fields),
            fields=fields,
            phrases=tuple(_phrases(fields)) if self._task(values) == "fields" else (),
            kept=tuple(_kept(values)),
            problem="; ".join(f"{message} ({hint})" for message, hint in row.wrong[:3]),
            remark=_decided(state),
            drafts=tuple(Draft(engine=name, values=self._draft(values, state, name)) for name in state.engines),
            differs=tuple(state.differs),
            section=_SECTIONS[turn],
            turn=turn,
        )

    def changed(self, line: str, change: Change) -> str:
        """The line after the change: only `reference` and `truth` are ever touched. Raises FieldError."""
        row = self._row(line)
        values, state = row.values, _state(row.values)
        status = _WRITTEN[change.status] if change.status else state.status
        reference = self._reference(values, change)
        decides = change.status == "verified" and (state.status != "verified" or not state.by)
        if _is_blank(reference) and (decides or (status == "verified" and reference is None)):
            reference = self._nothing(values, reference, change)
        if change.status == "verified" and self._task(values) == "fields" and isinstance(reference, dict):
            # What was shown empty was accepted empty.
            reference = {**reference, **{name: "" for name in self._names(values, state) if name not in reference}}
        new: dict[str, Any] = {"reference": reference} if reference != values.get("reference") else {}
        if status != state.status or (status == "verified" and (new or not state.by)):
            decided = {"by": self.by, "at": _now()} if status != "draft" else {}
            old = values.get("truth")
            kept = {name: old[name] for name in old if name not in ("by", "at")} if isinstance(old, dict) else {}
            new["truth"] = {**kept, "status": status, **decided}
        if not new:
            return line
        after = with_values(line, new)
        self._check(row, self._row(after), verified=change.status == "verified")
        return after

    def _row(self, line: str) -> Row:
        row = read_row(line.encode("utf-8", "surrogatepass"), 2, self.config)
        if not row.values:
            message, hint = row.wrong[0] if row.wrong else ("an empty object", "")
            raise DatasetError(message, hint=hint)
        return row

    def _task(self, values: Mapping[str, Any]) -> str:
        return _text(values.get("task", self.config.task))

    def _check(self, before: Row, after: Row, *, verified: bool) -> None:
        """Raise FieldError for the first new mistake; an old one may stay in what nobody has verified."""
        wrong = [found for found in after.wrong if verified or found not in before.wrong]
        if wrong:
            message, hint = wrong[0]
            names = [field.name for field in self._fields(after.values, _state(after.values))]
            name = next((name for name in names if message.startswith(f"field {name!r}")), names[0] if names else "")
            raise FieldError(f"{message}; {hint}" if hint else message, field=name)

    def _names(self, values: Mapping[str, Any], state: TruthState) -> list[str]:
        """The fields that are asked for: those of the folder, else those that truth or drafts have."""
        if self.config.fields:
            return list(self.config.fields)
        found = [values.get("reference"), *state.drafts.values()]
        return list(dict.fromkeys(name for each in found if isinstance(each, dict) for name in each))

    def _fields(self, values: Mapping[str, Any], state: TruthState) -> Iterator[Field]:
        task, reference = self._task(values), values.get("reference")
        if task == "fields":
            has = reference if isinstance(reference, dict) else {}
            for name in self._names(values, state):
                kind = self.config.fields.get(name, "text")
                yield Field(name=name, label=name, control="line", value=_text(has.get(name, "")), note=kind, kind=kind)
        elif task in _CONTROLS:
            control, label = _CONTROLS[task]
            labels = tuple(self.config.labels) if task == "class" else ()
            control = control if not labels else "label" if len(labels) <= _MOST_BUTTONS else "choice"
            yield Field(name=WHOLE, label=label, control=control, value=_shown(task, reference), choices=labels)

    def _draft(self, values: Mapping[str, Any], state: TruthState, engine: str) -> Mapping[str, str] | None:
        draft = state.drafts.get(engine)
        if draft is None:
            return None
        if self._task(values) != "fields":
            return {WHOLE: _shown(self._task(values), draft)}
        has = draft if isinstance(draft, dict) else {}
        return {name: _text(has.get(name, "")) for name in self._names(values, state)}

    def _reference(self, values: Mapping[str, Any], change: Change) -> Any:
        """The reference with what was typed."""
        task, reference = self._task(values), values.get("reference")
        known = {field.name for field in self._fields(values, _state(values))}
        for name, value in change.fields.items():
            if name not in known:
                raise FieldError(f"this sample has no field {name!r} to edit")
            if not isinstance(value, str):
                raise FieldError("a text", field=name)
        if not change.fields:
            return reference
        if task == "fields":
            has = reference if isinstance(reference, dict) else dict.fromkeys(self._names(values, _state(values)), "")
            return {**has, **{name: value.strip() for name, value in change.fields.items()}}
        (typed,) = change.fields.values()
        if task == "question":
            return [answer.strip() for answer in typed.splitlines() if answer.strip()]
        # A draft that was emptied is no draft again, not a wrong one.
        return typed or (
            None if task not in ("text", "markdown", "facts") and _state(values).status != "verified" else typed
        )

    def _nothing(self, values: Mapping[str, Any], reference: Any, change: Change) -> Any:
        """The meaning of verifying an entry with nothing in it, which a person has to confirm."""
        task = self._task(values)
        if task not in ("text", "markdown", "facts") and not (task == "fields" and self._names(values, _state(values))):
            raise FieldError("not filled in yet", field=WHOLE)
        if not change.confirmed:
            raise FieldError("all fields are empty; accept again if the page has none of them", ask=True)
        return reference if reference is not None else {} if task == "fields" else ""


def _state(values: Mapping[str, Any]) -> TruthState:
    if any(truth_mistakes(values)):
        return TruthState(status="draft")
    return truth_state(values)


def _is_blank(reference: Any) -> bool:
    """True if there is no text in any field or answer."""
    if isinstance(reference, str):
        return not reference.strip()
    found = reference.values() if isinstance(reference, dict) else reference
    return reference is None or (isinstance(found, Iterable) and all(map(_is_blank, found)))


def _turn(values: Mapping[str, Any], state: TruthState) -> int:
    """The order of entries, those that need a look first. Decisions move no sample under one's hands."""
    if state.differs:
        return 0
    drafted = sum(draft is not None for draft in state.drafts.values())
    if drafted:
        return 2 if drafted > 1 else 1
    # What an engine drafted is quickest done; what must be typed from nothing comes when that is done.
    return 3 if state.engines or values.get("reference") is None else 4


def _page(path: str) -> tuple[str, int]:
    source = page_source(Path(), path)
    return file_name(path), source.page if isinstance(source, DocumentPage) else 0


def _shown(task: str, reference: Any) -> str:
    if task == "question" and isinstance(reference, list):
        return "\n".join(map(_text, reference))
    return "" if reference is None else _text(reference)


def _summary(fields: tuple[Field, ...]) -> str:
    """One line for the list."""
    texts = [
        unescape(_TAG.sub(" ", field.value[:1000])) if field.control == "table" else field.value[:200]
        for field in fields
    ]
    return " · ".join(" ".join(text.split()) for text in texts if text.strip())[:200]


def _phrases(fields: tuple[Field, ...]) -> Iterator[tuple[str, str]]:
    for field in fields:
        if field.value.strip() and len(field.value) <= _LONGEST_PHRASE:
            yield field.name, field.value


def _kept(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Members that no form knows; they are never touched."""
    for name, value in values.items():
        if name not in KEYS or name in ("tags", "group"):
            yield name, json.dumps(value, ensure_ascii=False)[:2000]


def _decided(state: TruthState) -> str:
    if not state.by and not state.at:
        return ""
    return f"{state.status}{f' by {state.by}' if state.by else ''}{f', {state.at}' if state.at else ''}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
