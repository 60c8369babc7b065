"""The tests of omni_parse_bench as records, read and checked as the official program does.

Protocol: docs/protocols/omni_parse_bench.md#tests.
A test is what all kinds have in common, and a rule with what its kind compares.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from loupe.benchmarks.omni_parse_bench.folding import PrintedNumber, fold_short, read_number
from loupe.errors import DatasetError

Kind: TypeAlias = Literal["present", "order", "repeat", "table_cell", "layout_kind"]
OutputType: TypeAlias = Literal["html", "blocks"]
Box: TypeAlias = tuple[float, float, float, float]

KINDS: tuple[Kind, ...] = get_args(Kind)
OUTPUT_TYPES: tuple[OutputType, ...] = get_args(OutputType)
FAMILIES: Final[dict[Kind, str]] = {
    "present": "text",
    "order": "text",
    "repeat": "text",
    "table_cell": "tables",
    "layout_kind": "layout",
}
LABELS: Final = (
    *("text", "heading", "page_furniture", "list", "caption", "footnote", "equation", "code", "table", "form"),
    "figure",
)
DERIVATIONS: Final = (
    *("text_layer", "upstream_olmocr", "authored", "publisher_markup", "model_panel", "extractor_agreement"),
    *("human_review", "model_review", "upstream_frbench", "source_transcription"),
)
#: Tags by name; besides, scripts (ISO 15924) and languages (ISO 639-3).
TAGS: Final = frozenset(
    (
        *("heading", "caption", "footnote", "list", "code", "figure", "header_footer", "table", "math", "form"),
        *("multi_column", "tiny", "rotated", "handwriting", "degraded"),
    )
)
RELATIONS: Final = ("up", "down", "left", "right", "top_heading", "left_heading")
_CODE = re.compile("[a-z]{3}|[A-Z][a-z]{3}")
_FIELDS = ("id", "test_type", "output_type", "derivation", "tags", "args", "settings")
_LISTS = frozenset(("headings", "row_groups"))
_ROLES: Final[dict[str, tuple[str, ...]]] = {
    "present": ("content",),
    "order": ("before", "after"),
    "repeat": ("content",),
    "table_cell": ("cell", "headings", "section", "row_groups", *RELATIONS),
    "layout_kind": ("content",),
}


class GoldError(DatasetError):
    """A page or a test that the official program refuses."""


@dataclass(frozen=True, slots=True)
class TextRule:
    """`present`: a text that the page must hold."""

    text: str
    max_diffs: int


@dataclass(frozen=True, slots=True)
class NumberRule:
    """`present`: a number, digit for digit."""

    text: str
    number: PrintedNumber


@dataclass(frozen=True, slots=True)
class LatexRule:
    """`present`: an equation, by what it shows."""

    latex: str


@dataclass(frozen=True, slots=True)
class OrderRule:
    """`order`: one text that must begin before another."""

    before: str
    after: str
    max_diffs: int


@dataclass(frozen=True, slots=True)
class RepeatRule:
    """`repeat`: a text that must be there so often."""

    text: str
    expected_count: int


@dataclass(frozen=True, slots=True)
class CellRule:
    """`table_cell`: a cell, and what must stand around it."""

    cell: str
    max_diffs: int
    relations: tuple[tuple[str, str], ...] = ()
    headings: tuple[str, ...] = ()
    row_groups: tuple[str, ...] = ()
    section: str = ""


@dataclass(frozen=True, slots=True)
class LayoutRule:
    """`layout_kind`: what the block at a place must be; the text is for readers."""

    text: str
    place: tuple[Box, ...]
    kind: str


Rule: TypeAlias = TextRule | NumberRule | LatexRule | OrderRule | RepeatRule | CellRule | LayoutRule


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTest:
    """One test of one page."""

    id: str
    kind: Kind
    derivation: str
    tags: tuple[str, ...]
    rule: Rule

    @property
    def family(self) -> str:
        """The family of what it measures: text, tables or layout."""
        return FAMILIES[self.kind]

    @property
    def reads(self) -> OutputType:
        """The output that it looks at."""
        return "blocks" if self.kind == "layout_kind" else "html"


def read_tests(document: Any, place: str) -> tuple[PageTest, ...]:
    """The tests of a gold file. Raises GoldError; whether equations render is not looked at."""
    if not isinstance(document, dict) or set(document) != {"tests"} or not isinstance(document["tests"], list):
        raise GoldError(f"{place}: a gold file is an object with a list `tests`, and nothing else")
    return tuple(read_test(record, place) for record in document["tests"])


def read_test(record: Any, place: str) -> PageTest:
    """The test of a JSON object. Raises GoldError, as above."""
    if not isinstance(record, dict):
        raise GoldError(f"{place}: a test is no object")
    where = f"{place}, test {record.get('id')!r}"
    _check_names(record, where)
    kind: Kind = record["test_type"]
    args, settings = record["args"], record["settings"]
    _check_args(kind, args, where)
    return PageTest(
        id=record["id"],
        kind=kind,
        derivation=record["derivation"],
        tags=tuple(record["tags"]),
        rule=_RULES[kind](args, settings, where),
    )


def _check_names(record: Mapping[str, Any], where: str) -> None:
    """Check the names that all kinds have in common."""
    missing = [name for name in _FIELDS if name not in record]
    unknown = [name for name in record if name not in _FIELDS]
    if missing or unknown:
        what = f"lacks {_listed(missing)}" if missing else f"has unknown fields {_listed(unknown)}"
        raise GoldError(f"{where} {what}; a test has {_listed(_FIELDS)}")
    if not _is_text(record["id"]):
        raise GoldError(f"{where}: `id` is no text, or an empty one")
    kind = record["test_type"]
    if kind not in KINDS:
        raise GoldError(f"{where}: unknown `test_type` {kind!r}; there are {_listed(KINDS)}")
    reads = "blocks" if kind == "layout_kind" else "html"
    if record["output_type"] != reads:
        raise GoldError(f"{where}: `output_type` is {record['output_type']!r}, and {kind} reads {reads}")
    if record["derivation"] not in DERIVATIONS:
        raise GoldError(f"{where}: unknown `derivation` {record['derivation']!r}; there are {_listed(DERIVATIONS)}")
    tags = record["tags"]
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise GoldError(f"{where}: `tags` are no list of texts")
    if strange := [tag for tag in tags if tag not in TAGS and not _CODE.fullmatch(tag)]:
        known = _listed(sorted(TAGS))
        raise GoldError(f"{where}: unknown tags {_listed(strange)}; there are {known}, languages (eng), scripts (Latn)")


def _check_args(kind: str, args: Any, where: str) -> None:
    """The roles that a kind has, and that each holds what can be compared."""
    roles = _ROLES[kind]
    if not isinstance(args, dict):
        raise GoldError(f"{where}: `args` is no object")
    if unknown := [role for role in args if role not in roles]:
        raise GoldError(f"{where}: {kind} has no {_listed(unknown)}; it has {_listed(roles)}")
    required = roles[:1] if kind == "table_cell" else roles
    if missing := [role for role in required if role not in args]:
        raise GoldError(f"{where}: {kind} needs {_listed(missing)}")
    for role, value in args.items():
        if isinstance(value, list) != (role in _LISTS):
            raise GoldError(f"{where}: `{role}` is {'a list of arguments' if role in _LISTS else 'one argument'}")
        for each in value if isinstance(value, list) else [value]:
            _check_arg(each, f"{where}, {role}")


def _check_arg(arg: Any, where: str) -> None:
    names = set(arg) if isinstance(arg, dict) else set()
    if names == {"latex"}:
        if not _is_text(arg["latex"]):
            raise GoldError(f"{where}: `latex` is no text, or an empty one")
    elif names - {"place"} == {"text", "max_diffs"}:
        text, diffs = arg["text"], arg["max_diffs"]
        length = len(fold_short(text)) if isinstance(text, str) else 0
        if not length:
            raise GoldError(f"{where}: `text` is no text of which something is left after folding")
        if not isinstance(diffs, int) or isinstance(diffs, bool) or not 0 <= diffs < length:
            raise GoldError(f"{where}: `max_diffs` is {diffs!r}; it is a whole number from 0 to {length - 1}")
    elif names != {"number"}:
        raise GoldError(f"{where}: an argument is {{text, max_diffs[, place]}}, {{number}} or {{latex}}")


def _present(args: Mapping[str, Any], settings: Any, where: str) -> Rule:
    _check_settings(settings, (), where)
    content = args["content"]
    if "latex" in content:
        return LatexRule(content["latex"])
    if "number" in content:
        number = read_number(content["number"]) if isinstance(content["number"], str) else None
        if number is None:
            raise GoldError(f"{where}: {content['number']!r} does not read as one number, such as 1,240.00 or -4.8%")
        return NumberRule(content["number"], number)
    _place(content, where)
    return TextRule(content["text"], content["max_diffs"])


def _order(args: Mapping[str, Any], settings: Any, where: str) -> Rule:
    _check_settings(settings, (), where)
    diffs = _shared_diffs(args, where)
    return OrderRule(args["before"]["text"], args["after"]["text"], diffs)


def _repeat(args: Mapping[str, Any], settings: Any, where: str) -> Rule:
    _check_settings(settings, ("expected_count",), where)
    if _shared_diffs(args, where) != 0:
        raise GoldError(f"{where}: `max_diffs` of a repeat is 0")
    count = settings["expected_count"]
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise GoldError(f"{where}: `expected_count` is {count!r}; it is a whole number of at least 1")
    return RepeatRule(args["content"]["text"], count)


def _table_cell(args: Mapping[str, Any], settings: Any, where: str) -> Rule:
    _check_settings(settings, (), where)
    diffs = _shared_diffs(args, where)
    return CellRule(
        cell=args["cell"]["text"],
        max_diffs=diffs,
        relations=tuple((name, args[name]["text"]) for name in RELATIONS if name in args),
        headings=tuple(each["text"] for each in args.get("headings", ())),
        row_groups=tuple(each["text"] for each in args.get("row_groups", ())),
        section=args["section"]["text"] if "section" in args else "",
    )


def _layout_kind(args: Mapping[str, Any], settings: Any, where: str) -> Rule:
    _check_settings(settings, ("kind",), where)
    content, kind = args["content"], settings["kind"]
    place = _place(content, where) if "text" in content else ()
    if not place:
        raise GoldError(f"{where}: layout_kind compares a text with a `place`")
    if kind not in LABELS:
        raise GoldError(f"{where}: `kind` is {kind!r}; there are {_listed(LABELS)}")
    return LayoutRule(content["text"], place, kind)


_RULES: Final = {
    "present": _present,
    "order": _order,
    "repeat": _repeat,
    "table_cell": _table_cell,
    "layout_kind": _layout_kind,
}


def _check_settings(settings: Any, names: Sequence[str], where: str) -> None:
    if not isinstance(settings, dict) or set(settings) != set(names):
        raise GoldError(f"{where}: `settings` has exactly {_listed(names) if names else 'nothing'}")


def _shared_diffs(args: Mapping[str, Any], where: str) -> int:
    """The differences that all texts of a test allow."""
    listed = [each for value in args.values() for each in (value if isinstance(value, list) else [value])]
    if any("text" not in each for each in listed):
        raise GoldError(f"{where}: it compares texts only, no numbers and no equations")
    allowed = {each["max_diffs"] for each in listed}
    if len(allowed) != 1:
        raise GoldError(f"{where}: its arguments must have one `max_diffs`, not {sorted(allowed)}")
    return int(allowed.pop())


def _place(content: Mapping[str, Any], where: str) -> tuple[Box, ...]:
    boxes = content.get("place", [])
    if not isinstance(boxes, list) or not all(map(_is_box, boxes)):
        raise GoldError(f"{where}: `place` is no list of boxes [x0, y0, x1, y1] between 0 and 1, x0 < x1, y0 < y1")
    return tuple((float(box[0]), float(box[1]), float(box[2]), float(box[3])) for box in boxes)


def _is_box(box: Any) -> bool:
    if not isinstance(box, list) or len(box) != 4:
        return False
    # True and False pass for numbers, as they do officially.
    return all(isinstance(x, (int, float)) and 0 <= x <= 1 for x in box) and box[0] < box[2] and box[1] < box[3]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(str, names))
