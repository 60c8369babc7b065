"""Draft truth: what an engine's answer would be as a reference, whether several engines agree, and what stands then.

Rules: docs/own-data.md. Pure; nothing here makes truth verified.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import msgspec

from loupe.benchmarks.folders.own.config import FolderConfig, canonical_key, fold_label, judge_field, label_of
from loupe.benchmarks.folders.own.normalization import Comparison, prepare_formula, prepare_markdown, prepare_text
from loupe.benchmarks.folders.own.rows import WHOLE, TruthState, truth_state
from loupe.benchmarks.folders.own.scorers import read_fields
from loupe.benchmarks.folders.own.tables import read_table
from loupe.benchmarks.shared.answer_texts import remove_fence

_SURROGATE = re.compile("[\ud800-\udfff]")

Equal: TypeAlias = Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True)
class Draft:
    """A reference in the form of its task, or None and why there is none."""

    reference: Any
    why: str = ""


def draft_of(answer: str, task: str, config: FolderConfig) -> Draft:
    """An answer as a reference. Texts may be empty, as pages may; all else is needed in a form that can be read.

    Half a surrogate pair, which no file of samples may hold, becomes U+FFFD.
    """
    answer = _SURROGATE.sub("\ufffd", answer)
    if task in ("text", "markdown", "formula", "facts"):
        return Draft(answer.strip() if task == "text" else remove_fence(answer).strip())
    if task == "table":
        return Draft(remove_fence(answer).strip()) if read_table(answer) else Draft(None, "no table in the answer")
    if task == "question":
        return Draft([answer.strip()]) if answer.strip() else Draft(None, "the answer is empty")
    if task == "class":
        found = label_of(answer, config.labels)
        return Draft(found, "" if found else f"{_short(answer)} is none of the labels")
    values = read_fields(answer, config.fields)
    if values is None:
        return Draft(None, f"{_short(answer)} is no JSON object with the fields")
    known = {name: values.get(canonical_key(name), "").strip() for name in config.fields}
    return Draft({name: _SURROGATE.sub("\ufffd", value) for name, value in known.items()})


def _short(answer: str) -> str:
    flat = " ".join(answer.split())
    return repr(flat if len(flat) <= 40 else flat[:39] + "…") if flat else "an empty answer"


def with_draft(
    values: Mapping[str, Any], engine: str, reference: Any, config: FolderConfig, *, answered: bool = True
) -> dict[str, Any] | None:
    """Return the changes in a line when an engine has drafted it: `reference` and `truth`; None where truth is not a
    draft.

    An answer that is no reference is kept as None; an engine that gave no answer at all is named, and asked again,
    unless it has given a usable draft before: that stays.

    The reference is, field by field, what most engines have, of ties the first engine's. A reference that no engine has
    drafted was written by a person, and stays.
    """
    state = truth_state(values)
    if state.status != "draft":
        return None
    task = values.get("task", config.task)
    drafts = dict(state.drafts)
    if answered:
        drafts[engine] = reference
    elif drafts.get(engine) is None:
        drafts.pop(engine, None)
    engines = [*state.engines, *([] if engine in state.engines else [engine])]
    now = values.get("reference")
    by_hand = now is not None and now != agreed(state.drafts, task, config)
    truth = TruthState(
        status="draft",
        engines=engines,
        differs=differing([drafts.get(name) for name in engines], task, config),
        drafts={name: drafts[name] for name in engines if name in drafts},
        by=state.by,
        at=state.at,
    )
    return {
        "reference": now if by_hand else agreed(truth.drafts, task, config),
        "truth": msgspec.to_builtins(truth) | {"differs": truth.differs},
    }


def is_to_draft(state: TruthState, engine: str, *, failed: bool = False) -> bool:
    """True if an engine is to be asked for a draft; with `failed`, also if its answer was not usable."""
    return state.status == "draft" and (state.drafts.get(engine) is None if failed else engine not in state.drafts)


def agreed(drafts: Mapping[str, Any], task: str, config: FolderConfig) -> Any:
    """Return the values that most drafts have, field by field; of ties the first. None without any draft."""
    kept = [draft for draft in drafts.values() if draft is not None]
    if not kept:
        return None
    if task != "fields":
        return _most(kept, _equal(task, config))
    names = list(config.fields) or list(dict.fromkeys(name for draft in kept for name in draft))
    return {name: _most([draft.get(name, "") for draft in kept], _equal_field(name, config)) for name in names}


def differing(drafts: Sequence[Any], task: str, config: FolderConfig) -> list[str]:
    """The fields in which drafts do not agree, `reference` for tasks without fields; None is no draft."""
    drafts = [draft for draft in drafts if draft is not None]
    if task != "fields":
        equal = _equal(task, config)
        return [] if all(equal(*pair) for pair in combinations(drafts, 2)) else [WHOLE]
    names = list(config.fields) or list(dict.fromkeys(name for draft in drafts for name in draft))
    return [
        name
        for name in names
        if any(
            not _equal_field(name, config)(*(draft.get(name, "") for draft in pair)) for pair in combinations(drafts, 2)
        )
    ]


def _most(values: Sequence[Any], equal: Equal) -> Any:
    votes = Counter({place: sum(equal(value, other) for other in values) for place, value in enumerate(values)})
    return values[max(range(len(values)), key=lambda place: (votes[place], -place))]


def _equal_field(name: str, config: FolderConfig) -> Equal:
    comparison = Comparison(config.ignore_case, config.whitespace)
    kind = config.fields.get(name, "text")

    def equal(a: str, b: str) -> bool:
        return all(
            judge_field(kind, *pair, comparison=comparison, order=config.date_order)[0] == 1.0
            for pair in ((a, b), (b, a))
        )

    return equal


def _equal(task: str, config: FolderConfig) -> Equal:
    """The function that takes two drafts of a task for the same, by the spellings that its scoring takes for one."""
    comparison = Comparison(config.ignore_case, config.whitespace)
    spelling: dict[str, Callable[[Any], object]] = {
        "text": lambda text: prepare_text(text, comparison),
        "markdown": prepare_markdown,
        "facts": prepare_markdown,
        "formula": prepare_formula,
        "table": lambda text: {place: prepare_text(cell, comparison) for place, cell in read_table(text).items()},
        "question": lambda answers: [prepare_text(answer, comparison).casefold() for answer in answers],
    }
    bare = spelling.get(task, fold_label)
    return lambda a, b: bare(a) == bare(b)
