"""What was called otherwise before: understood for one version more, whether a user types it or a stored run has it.

Nothing else in Loupe knows these words. The command line says the word of now where somebody types one of before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

#: Before → now.
TEDS_VARIANTS: Final = {"request001": "normalized"}
CDM_PROFILES: Final = {"request": "omnidocbench_pdflatex"}
LAYOUTS: Final = {"request": "evaluation"}
_MEASURES: Final = {"edit_distance_request000": "edit_distance_with_blanks"}


class _Value(NamedTuple):
    """A value of an option, which samples bear as a tag, too."""

    option: str
    tag: str
    now: str
    before: str = "request001"


#: By the id of the benchmark.
_VALUES: Final = {
    "dp_bench": _Value("variant", "variant", "best_table"),
    "handwritten_forms": _Value("variant", "variant", "normalized"),
    "iam_lines": _Value("text", "preparation", "punct-quotes"),
    "nanonets_kie": _Value("variant", "variant", "normalized"),
}


def options_of_now(benchmark: str, options: Mapping[str, str]) -> dict[str, str]:
    """Options of a benchmark (its id) with the values of now."""
    value = _VALUES.get(benchmark)
    return _valued(options, value.option, value) if value else dict(options)


def record_of_now(benchmark: str, record: bytes) -> bytes:
    """JSON of a run of this benchmark (`run.json`, `result.json`, a line of `scores.jsonl`) with the words of now.

    Only in their own places are words taken for such: answers, ids, messages and names of runs stay as they are, and
    so does what is no record.
    """
    value = _VALUES.get(benchmark)
    words = [*_MEASURES, *([value.before] if value else ())]
    if not any(word.encode() in record for word in words):
        return record
    try:
        stored = json.loads(record)
        now = _record(stored, value) if isinstance(stored, dict) else stored
    except (ValueError, RecursionError):
        return record  # whoever decodes it says what is wrong
    return record if now == stored else json.dumps(now).encode()


def _record(stored: dict[str, Any], value: _Value | None) -> dict[str, Any]:
    found = dict(stored)
    for place in ("measures", "directions", "units", "not_computed"):
        if place in found:
            found[place] = _renamed(found[place], _MEASURES)
    if isinstance(found.get("headline"), str):
        found["headline"] = _MEASURES.get(found["headline"], found["headline"])
    if isinstance(found.get("scores"), list):
        found["scores"] = [_score(each, value) for each in found["scores"]]
    if isinstance(found.get("slices"), dict):
        found["slices"] = {tag: _slice(tag, values, value) for tag, values in found["slices"].items()}
    if value is not None:
        for place, name in (("options", value.option), ("tags", value.tag)):
            if place in found:
                found[place] = _valued(found[place], name, value)
        if isinstance(found.get("signature"), str):
            before, now = (f"opt:{value.option}={word}" for word in (value.before, value.now))
            found["signature"] = "|".join(now if part == before else part for part in found["signature"].split("|"))
    return found


def _score(score: Any, value: _Value | None) -> Any:
    """One measurement of a sample."""
    if not isinstance(score, dict):
        return score
    found = dict(score)
    if isinstance(found.get("measure"), str):
        found["measure"] = _MEASURES.get(found["measure"], found["measure"])
    if value is not None and "tags" in found:
        found["tags"] = _valued(found["tags"], value.tag, value)
    return found


def _slice(tag: str, values: Any, value: _Value | None) -> Any:
    """The estimates of one tag: by its values, then by measure."""
    if not isinstance(values, dict):
        return values
    if value is not None and tag == value.tag:
        values = _renamed(values, {value.before: value.now})
    return {name: _renamed(estimates, _MEASURES) for name, estimates in values.items()}


def _valued(mapping: Any, name: str, value: _Value) -> Any:
    """A mapping in which this name has the value of now."""
    if not isinstance(mapping, Mapping):
        return mapping
    return {key: value.now if (key, given) == (name, value.before) else given for key, given in mapping.items()}


def _renamed(mapping: Any, names: Mapping[str, str]) -> Any:
    """A mapping with the keys of now."""
    if not isinstance(mapping, Mapping):
        return mapping
    return {names.get(key, key): given for key, given in mapping.items()}
