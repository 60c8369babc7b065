"""`truth` of a line of samples.jsonl: whether a person has looked at its reference, and what engines had drafted.

Format: docs/own-data.md. A line without the key was written by hand, which counts as verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from loupe.errors import did_you_mean
from loupe.typed import convert

Status: TypeAlias = Literal["draft", "verified", "skipped"]

STATUSES: tuple[str, ...] = get_args(Status)
#: What `differs` names for tasks without fields.
WHOLE = "reference"


class TruthState(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, omit_defaults=True):
    """The key `truth`. `engines` drafted, in the order asked; `drafts` is what each of them has as reference.

    None in `drafts`: that engine failed on this sample. `differs` names the fields in which the drafts do not agree,
    `reference` for tasks without fields; nothing: they agree, or there is one. `by` and `at` (UTC, ISO 8601) say who
    verified or skipped the sample, and when.
    """

    status: Status
    engines: list[str] = []
    differs: list[str] = []
    drafts: dict[str, Any] = {}
    by: str = ""
    at: str = ""


def truth_state(values: Mapping[str, Any]) -> TruthState:
    """The state of a line that `truth_mistakes` finds nothing wrong with."""
    return convert(values["truth"], TruthState) if "truth" in values else TruthState(status="verified")


def is_skipped(values: Mapping[str, Any]) -> bool:
    """Return whether a person has skipped the sample: no command that runs or checks needs its pages."""
    truth = values.get("truth")
    return isinstance(truth, dict) and truth.get("status") == "skipped"


def may_lack_reference(values: Mapping[str, Any]) -> bool:
    """Whether `reference` may be null: nobody has verified this line yet, or it was skipped."""
    truth = values.get("truth")
    return isinstance(truth, dict) and truth.get("status") in ("draft", "skipped")


def truth_mistakes(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with the key `truth` of a line, as (message, hint)."""
    if "truth" not in values:
        return
    truth = values["truth"]
    example = 'write "truth": {"status": "draft"}, or leave it out for truth that you wrote yourself'
    if not isinstance(truth, dict):
        yield "truth is no object", example
        return
    known = TruthState.__struct_fields__
    for key in truth:
        if key not in known:
            yield f"truth: unknown key {key!r}{did_you_mean(key, known)}", f"known keys: {', '.join(known)}"
    status = truth.get("status")
    if status not in STATUSES:
        meant = did_you_mean(status, STATUSES) if isinstance(status, str) else ""
        yield f"truth: no status {status!r}{meant}", f"one of {', '.join(STATUSES)}"
    try:
        convert({"status": "draft", **{key: truth[key] for key in known[1:] if key in truth}}, TruthState)
    except msgspec.ValidationError as error:
        yield f"truth: {str(error).replace(' - at `$', ' at `truth')}", example
