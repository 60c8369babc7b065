"""From an answer to fields where it holds JSON: docext's way with json_repair, and the strict way.

Protocol: docs/benchmarks/nanonets_kie.md. Results of json_repair differ between versions; parity is proven for 0.64.5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version

from loupe.data.extras import installed

#: The release that the official values were computed with; run.json and the document say which one is in use.
JSON_REPAIR_VERSION = "0.64.5"
#: Of longer answers that are no JSON the middle is cut out before repair, which takes quadratic time on hostile text:
#: seconds for this length, minutes for the worst, hours for 1 MB.
LONGEST_REPAIR = 20_000
#: Some texts take a second for this length. Scoring has a limit of time for each answer, a report has none.
_QUICK_REPAIR = 1_500


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of an answer: texts by field name, whether JSON was found, and where each field came from.

    `cut`: the answer was too long to be repaired whole.
    """

    fields: Mapping[str, str]
    found_json: bool
    sources: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


def json_repair_version() -> str:
    """The release of json_repair that is installed."""
    return version("json_repair")


def answer_tools() -> dict[str, str]:
    """Return the tools besides Loupe that decide about scores."""
    return installed("json_repair")


def read_like_docext(answer: str) -> Reading:
    """Fields by docext's rules: JSON is repaired, keys must agree exactly, nothing is unwrapped."""
    found = parse_like_docext(answer)
    fields = {key: text_like_docext(value) for key, value in (found or {}).items()}
    return Reading(fields, found is not None, cut=is_cut(answer))


def read_strictly(answer: str) -> Reading:
    """Fields by the rules of `strict_json`: without an outer fence it must be JSON; values are Python's `str`."""
    found = parse_strictly(answer)
    return Reading({key: _python_text(value) for key, value in (found or {}).items()}, found is not None)


def parse_like_docext(answer: str) -> dict[str, object] | None:
    """The object in an answer after repair, None if there is none. A list of objects is merged into one.

    Where docext crashes and its whole run with it (a number, true, null or a text is found), there is no object.
    """
    return object_like_docext(repaired(answer))


def repaired(answer: str) -> object:
    """Whatever JSON repair finds in an answer: an object, a list, a text, a number; None if there is none."""
    if not answer:
        return None
    from json_repair import repair_json

    try:
        found: object = repair_json(_bounded(answer), ensure_ascii=False, return_objects=True)
    except (ValueError, RecursionError, AssertionError):  # json_repair asserts what some broken answers do not hold to
        return None
    return found


def object_like_docext(found: object) -> dict[str, object] | None:
    """The object that docext makes of repaired JSON, None where it crashes or has none."""
    if isinstance(found, list):
        return _merge_like_docext([each for each in found if isinstance(each, dict)])
    return found if isinstance(found, dict) else None


def is_cut(answer: str, longest: int = LONGEST_REPAIR) -> bool:
    """True if repair sees a part of the answer only: it is long, and no JSON as it stands."""
    if len(answer) <= longest:
        return False
    try:
        json.loads(answer)
    except (ValueError, RecursionError):
        return True
    return False


def is_dear(answer: str) -> bool:
    """True if reading may take more than a second: it is not short, and no JSON as it stands."""
    return is_cut(answer, longest=_QUICK_REPAIR)


def _bounded(answer: str) -> str:
    """Return the part to repair: the answer, or its beginning if JSON opens it, else both ends; reasoning stands before
    JSON.
    """
    if not is_cut(answer):
        return answer
    if answer.lstrip().startswith(("{", "[", "```")):
        return answer[:LONGEST_REPAIR]
    half = LONGEST_REPAIR // 2
    return f"{answer[:half]}\n{answer[-half:]}"


def _merge_like_docext(objects: list[dict[str, object]]) -> dict[str, object] | None:
    """One object out of several: a key that comes again holds the list of its values."""
    merged: dict[str, object] = {}
    for each in objects:
        for key, value in each.items():
            if key not in merged:
                merged[key] = value
            elif isinstance(known := merged[key], list):
                known.append(value)
            else:
                merged[key] = [known, value]
    return merged if objects else None


def text_like_docext(value: object) -> str:
    r"""A value as text: null is empty, what is no text is JSON with `\u` escapes (`["a"]`, `12.5`, `true`)."""
    if value is None:
        return ""
    try:
        return value if isinstance(value, str) else json.dumps(value)
    except RecursionError:
        return ""


def parse_strictly(answer: str) -> dict[str, object] | None:
    """The JSON object of an answer, None if it is not one; a lone code fence around it is dropped."""
    text = answer.strip()
    if text.startswith("```"):
        lines = text.split("\n")[1:]
        if lines and lines[-1].strip() == "```":
            lines.pop()
        text = "\n".join(lines)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _python_text(value: object) -> str:
    try:
        return str(value)
    except (RecursionError, ValueError):
        return ""
