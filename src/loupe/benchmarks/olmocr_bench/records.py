"""Define the tests of olmOCR-Bench and their outcomes, read and checked as the official evaluator does.

The text normalisation here applies to the words of a test and to the page.
Protocol: docs/protocols/olmocr_bench.md#normalisation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from loupe.benchmarks.shared.answer_texts import with_sorted_marks
from loupe.errors import DatasetError

Kind: TypeAlias = Literal["present", "absent", "order", "table", "math", "baseline", "format", "footnote"]
KINDS: tuple[Kind, ...] = get_args(Kind)
FORMATS = ("heading", "bold", "italic")


class TestRecordError(DatasetError):
    """A record that the official evaluator refuses; `official` is the class of the exception it raises."""

    __test__ = False  # no test of ours, whatever pytest makes of the name

    def __init__(self, message: str, *, official: str = "ValidationError") -> None:
        super().__init__(message)
        self.official = official


@dataclass(frozen=True, slots=True)
class TextRule:
    """`present` and `absent`: a text that the page must hold, or must not."""

    text: str
    absent: bool = False
    case_sensitive: bool = True
    first_n: int | None = None
    last_n: int | None = None


@dataclass(frozen=True, slots=True)
class OrderRule:
    """`order`: one text that must stand before another."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class TableRule:
    """`table`: a cell, and what stands around it. A cell of None cannot be searched for: the test always fails."""

    cell: str | None
    relations: tuple[tuple[str, str], ...] = ()
    ignore_markdown_tables: bool = False


@dataclass(frozen=True, slots=True)
class MathRule:
    """`math`: an equation in LaTeX, compared as rendered."""

    math: str
    ignore_dollar_delimited: bool = False


@dataclass(frozen=True, slots=True)
class BaselineRule:
    """`baseline`: the answer is not empty, does not loop, and is in plausible characters; or the page is blank."""

    max_length: int | None = None
    max_length_skips_image_alt_tags: bool = False
    max_repeats: int | None = 30
    check_disallowed_characters: bool = True


@dataclass(frozen=True, slots=True)
class FormatRule:
    """`format`: a text that must be a heading, bold or italic."""

    text: str
    format: str
    case_sensitive: bool = True


@dataclass(frozen=True, slots=True)
class FootnoteRule:
    """`footnote`: a marker that must be there, with texts before and after it where these are given."""

    marker: str
    before: str = ""
    after: str = ""


Rule: TypeAlias = TextRule | OrderRule | TableRule | MathRule | BaselineRule | FormatRule | FootnoteRule
RULES: Mapping[Kind, type[Rule]] = {
    "present": TextRule,
    "absent": TextRule,
    "order": OrderRule,
    "table": TableRule,
    "math": MathRule,
    "baseline": BaselineRule,
    "format": FormatRule,
    "footnote": FootnoteRule,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTest:
    """One fact about one page; `category` is the name of its file, or `baseline` for automatic tests."""

    id: str
    pdf: str
    page: int
    kind: Kind
    rule: Rule
    max_diffs: int = 0
    category: str = ""


#: In the order in which the official evaluator checks them.
RELATIONS = ("up", "down", "left", "right", "left_heading", "top_heading")
_COMMON = ("pdf", "page", "id", "type")
_OPTIONAL = ("max_diffs", "checked", "url")
_REQUIRED: dict[str, tuple[str, ...]] = {
    "present": ("text",),
    "absent": ("text",),
    "order": ("before", "after"),
    "table": ("cell",),
    "math": ("math",),
    "baseline": (),
    "format": ("text", "format"),
    "footnote": ("marker",),
}
_FIELDS: dict[str, tuple[str, ...]] = {
    "present": ("case_sensitive", "first_n", "last_n"),
    "absent": ("case_sensitive", "first_n", "last_n"),
    "order": (),
    "table": (*RELATIONS, "ignore_markdown_tables"),
    "math": ("ignore_dollar_delimited",),
    "baseline": ("max_length", "max_length_skips_image_alt_tags", "max_repeats", "check_disallowed_characters"),
    "format": ("case_sensitive",),
    "footnote": ("appears_before_marker", "appears_after_marker"),
}


def read_test(record: Mapping[str, Any], *, category: str = "") -> PageTest:
    """The test that a JSON object describes. Raises TestRecordError for what the official evaluator refuses."""
    kind = record.get("type")
    if kind not in KINDS:
        raise TestRecordError(f"unknown test type {kind!r}; types: {', '.join(KINDS)}")
    _check_names(record, kind)
    max_diffs = _check_common(record)
    return PageTest(
        id=record["id"],
        pdf=record["pdf"],
        page=record["page"],
        kind=kind,
        rule=_rule(record, kind, max_diffs),
        max_diffs=max_diffs,
        category=category,
    )


def _check_names(record: Mapping[str, Any], kind: str) -> None:
    required = (*_COMMON, *_REQUIRED[kind])
    missing = [name for name in required if name not in record]
    if missing:
        raise TestRecordError(f"a test of type {kind} needs {_quoted(missing)}", official="TypeError")
    unknown = [name for name in record if name not in (*required, *_OPTIONAL, *_FIELDS[kind])]
    if unknown:
        raise TestRecordError(f"a test of type {kind} has no field {_quoted(unknown)}", official="TypeError")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _check_common(record: Mapping[str, Any]) -> int:
    if not record["pdf"]:
        raise TestRecordError("`pdf` is empty")
    if not record["id"]:
        raise TestRecordError("`id` is empty")
    max_diffs = record.get("max_diffs", 0)
    if not isinstance(max_diffs, int) or max_diffs < 0:
        raise TestRecordError(f"`max_diffs` is {max_diffs!r}, not a whole number of at least 0")
    return max_diffs


def _rule(record: Mapping[str, Any], kind: str, max_diffs: int) -> Rule:
    if kind in ("present", "absent"):
        return TextRule(
            text=_text(record, "text"),
            absent=kind == "absent",
            case_sensitive=bool(record.get("case_sensitive", True)),
            first_n=_count(record, "first_n"),
            last_n=_count(record, "last_n"),
        )
    if kind == "order":
        return _order(record, max_diffs)
    if kind == "table":
        named = [(name, _normalized(record, name) or "") for name in RELATIONS]
        return TableRule(
            cell=_normalized(record, "cell"),
            relations=tuple((name, text) for name, text in named if text),
            ignore_markdown_tables=bool(record.get("ignore_markdown_tables", False)),
        )
    if kind == "math":
        return MathRule(math=_math(record), ignore_dollar_delimited=bool(record.get("ignore_dollar_delimited", False)))
    if kind == "baseline":
        return _baseline(record)
    if kind == "format":
        text = _text(record, "text")
        if record["format"] not in FORMATS:
            raise TestRecordError(f"`format` is {record['format']!r}, not one of {', '.join(FORMATS)}")
        return FormatRule(text=text, format=record["format"], case_sensitive=bool(record.get("case_sensitive", True)))
    return _footnote(record)


def _order(record: Mapping[str, Any], max_diffs: int) -> OrderRule:
    rule = OrderRule(before=_text(record, "before"), after=_text(record, "after"))
    for name, text in (("before", rule.before), ("after", rule.after)):
        if max_diffs > len(text) // 2:
            raise TestRecordError(
                f"`max_diffs` {max_diffs} is more than half of the {len(text)} characters of `{name}`"
            )
    return rule


def _math(record: Mapping[str, Any]) -> str:
    math = record["math"]
    if not isinstance(math, str):
        raise TestRecordError(f"`math` is no text: {math!r}", official="AttributeError")
    if not math.strip():
        raise TestRecordError("`math` is empty")
    return math


def _baseline(record: Mapping[str, Any]) -> BaselineRule:
    return BaselineRule(
        max_length=_count(record, "max_length"),
        max_length_skips_image_alt_tags=bool(record.get("max_length_skips_image_alt_tags", False)),
        max_repeats=_count(record, "max_repeats", 30),
        check_disallowed_characters=bool(record.get("check_disallowed_characters", True)),
    )


def _footnote(record: Mapping[str, Any]) -> FootnoteRule:
    marker = record["marker"]
    if not marker:
        raise TestRecordError("`marker` is empty")
    if not isinstance(marker, str):
        raise TestRecordError(f"`marker` is no text: {marker!r}", official="TypeError")
    if " " in marker:
        raise TestRecordError("`marker` has a blank in it")
    around = {}
    for name in ("appears_before_marker", "appears_after_marker"):
        # What is given must be something after normalisation, too: `**` is not.
        around[name] = _text(record, name) if record.get(name) else ""
    return FootnoteRule(marker=marker, before=around["appears_before_marker"], after=around["appears_after_marker"])


def _text(record: Mapping[str, Any], name: str) -> str:
    """A normalised text that is not blank."""
    text = _normalized(record, name)
    if text is None:
        raise TestRecordError(f"`{name}` is null", official="AttributeError")
    if not text.strip():
        raise TestRecordError(f"`{name}` is empty")
    return text


def _normalized(record: Mapping[str, Any], name: str) -> str | None:
    text = record.get(name, "")
    if text is None:
        return None
    if not isinstance(text, str):
        raise TestRecordError(f"`{name}` is no text: {text!r}", official="TypeError")
    return normalize(text)


def _count(record: Mapping[str, Any], name: str, default: int | None = None) -> int | None:
    """A whole number or nothing; upstream would fail on anything else when the test is run."""
    value = record.get(name, default)
    if value is not None and not isinstance(value, int):
        raise TestRecordError(f"`{name}` is {value!r}, not a whole number")
    return value


#: Figures that explain an outcome: numbers, or texts of bounded length.
Figures: TypeAlias = Mapping[str, float | int | str]

#: The explanation of every test of a page without an answer, where that fails them all.
NO_ANSWER = "missing_file"
#: Longest text that is kept to explain a failure.
LONGEST_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """`explanation` is `pass`, or the class of the official explanation: `absent_found`, `table_none` and so on."""

    passed: bool
    explanation: str = "pass"
    figures: Figures = field(default_factory=dict)


PASSED = Outcome(True)


def failed(explanation: str, **figures: float | int | str) -> Outcome:
    """A test that failed, with what a report shows of it."""
    return Outcome(False, explanation, {name: _shortened(value) for name, value in figures.items()})


def _shortened(value: float | int | str) -> float | int | str:
    if not isinstance(value, str):
        return value
    shown = value if len(value) <= LONGEST_SHOWN else value[:LONGEST_SHOWN] + "…"
    # Answers may hold lone surrogates, which no file can.
    return shown.encode("utf-8", "replace").decode()


def threshold_of(text: str, max_diffs: int) -> float:
    """The similarity that is enough; in floating point exactly as upstream writes it.

    Protocol: docs/protocols/olmocr_bench.md#present-and-absent.
    """
    return 1.0 - (max_diffs / (len(text) if len(text) > 0 else 1))


_BREAK = re.compile(r"<br/?>")
_STARS = re.compile(r"\*\*(.*?)\*\*")
_UNDERSCORES = re.compile(r"__(.*?)__")
_BOLD_TAG = re.compile(r"</?b>")
_ITALIC_TAG = re.compile(r"</?i>")
_DOUBLE_MARK = re.compile(r"(\*\*|__)(.*?)\1")
_SINGLE_MARK = re.compile(r"(\*|_)(.*?)\1")
_BLANKS = re.compile(r"\s+")

_PLAIN = {
    **dict.fromkeys("‘’‚", "'"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("–—‑‒−", "-"),
    "＿": "_",
    "\N{MICRO SIGN}": "\N{GREEK SMALL LETTER MU}",
}
_PLAIN_TABLE = str.maketrans(_PLAIN)


def normalize(text: str) -> str:
    """The text as olmOCR-Bench compares it: marks of emphasis gone, blanks single, a few signs in their plain form.

    Not idempotent, and not trimmed. The order of the steps is the official one.

    >>> normalize("**A** “b”<br>c_d_e")
    'A "b" cde'
    """
    text = _BREAK.sub(" ", text)
    text = _UNDERSCORES.sub(r"\1", _STARS.sub(r"\1", text))
    text = _ITALIC_TAG.sub("", _BOLD_TAG.sub("", text))
    text = remove_single_marks_like_official(_DOUBLE_MARK.sub(r"\2", text))
    text = _BLANKS.sub(" ", text)
    if text.isascii():
        return text
    return compose(text).translate(_PLAIN_TABLE)


def remove_single_marks_like_official(text: str) -> str:
    """Take any two equal `*` or `_` on a line for emphasis, also in `snake_case_name` and `2 * 3 * 4` (#quirks)."""
    return _SINGLE_MARK.sub(r"\2", text)


def compose(text: str) -> str:
    """NFC, in linear time."""
    return unicodedata.normalize("NFC", with_sorted_marks(text))
