"""What an answer is: the outputs `html` and `blocks` of the official program, HTML, or Markdown.

Protocol: docs/protocols/omni_parse_bench.md#outputs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from loupe.benchmarks.omni_parse_bench.markdown_html import html_of_markdown, unwrapped
from loupe.benchmarks.omni_parse_bench.outcomes import GradingError
from loupe.benchmarks.omni_parse_bench.page import Block
from loupe.benchmarks.omni_parse_bench.records import LABELS, OUTPUT_TYPES, OutputType

Form: TypeAlias = Literal["auto", "markdown", "html", "json"]
Outputs: TypeAlias = Literal["auto", "html", "both"]

#: Longer HTML, or more blocks, are malformed: limits of ours, far above any page.
LONGEST_HTML = 1_000_000
MOST_BLOCKS = 20_000
_MARKDOWN_SIGN = re.compile(r"(?m)^[ \t]{0,3}(?:#{1,6}[ \t]|\|.*\||[-*+][ \t]|\d{1,9}[.)][ \t])|\*\*\S")


@dataclass(frozen=True, slots=True)
class Answer:
    """The outputs of one page: None where there is none, `malformed` says why one cannot be read.

    `unsupported` are outputs that the engine does not make; `tells_blocks`: this answer shows that it makes blocks.
    """

    html: str | None = None
    blocks: tuple[Block, ...] | None = None
    malformed: Mapping[OutputType, str] = field(default_factory=dict)
    unsupported: frozenset[OutputType] = frozenset()
    tells_blocks: bool = False


def read_answer(text: str, *, form: Form = "auto", outputs: Outputs = "auto") -> Answer:
    """The outputs of an answer. Blocks are unsupported with outputs=html, and expected of each answer with `both`."""
    unsupported: frozenset[OutputType] = frozenset({"blocks"} if outputs == "html" else ())
    expected = {"blocks": None} if outputs == "both" else {}
    found = _prediction(text) if form in ("auto", "json") else None
    if found is not None or form == "json":
        return answer_of(expected | (found or {}), unsupported)
    if form == "auto" and _is_html(inner := unwrapped(text).strip()):
        form, text = "html", inner
    return answer_of(expected | {"html": text if form == "html" else _converted(text)}, unsupported)


def answer_of(found: Mapping[str, Any], unsupported: frozenset[OutputType] = frozenset()) -> Answer:
    """The outputs of an official prediction."""
    malformed: dict[OutputType, str] = {}
    html, blocks = found.get("html"), found.get("blocks")
    if html is not None and not isinstance(html, str):
        malformed["html"] = "`html` is no text"
    elif html is not None and len(html) > LONGEST_HTML:
        malformed["html"] = f"`html` has {len(html):,} characters, and at most {LONGEST_HTML:,} are read"
    read: tuple[Block, ...] | None = None
    if blocks is not None:
        try:
            read = _blocks(blocks)
        except ValueError as error:
            malformed["blocks"] = str(error)
    return Answer(
        html=None if "html" in malformed else html,
        blocks=read,
        malformed=malformed,
        unsupported=unsupported,
        tells_blocks="blocks" in found and "blocks" not in unsupported,
    )


def _prediction(text: str) -> dict[str, Any] | None:
    """The official prediction that a text is: an object with outputs, and nothing else."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found and set(found) <= set(OUTPUT_TYPES) else None


def _is_html(text: str) -> bool:
    """Whether an answer of unknown form is HTML: it begins with a tag, and shows no mark of Markdown."""
    return text.startswith("<") and not _MARKDOWN_SIGN.search(text)


def _converted(text: str) -> str | None:
    if len(text) > LONGEST_HTML:
        return text
    try:
        return html_of_markdown(text)
    except GradingError:
        # The official adapter of such an engine fails, and its page has no output.
        return None


def _blocks(found: Any) -> tuple[Block, ...]:
    """The blocks of an output. Raises ValueError, which says what is wrong with it."""
    if not isinstance(found, list):
        raise ValueError("`blocks` is no list")
    if len(found) > MOST_BLOCKS:
        raise ValueError(f"{len(found):,} blocks, and at most {MOST_BLOCKS:,} are read")
    return tuple(_block(block, number) for number, block in enumerate(found))


def _block(block: Any, number: int) -> Block:
    names = set(block) if isinstance(block, dict) else set()
    if names - {"text"} != {"label", "bbox"}:
        raise ValueError(f"block {number} is no object of `label`, `bbox` and perhaps `text`")
    label, box, text = block["label"], block["bbox"], block.get("text")
    if not isinstance(label, str) or label not in LABELS:
        raise ValueError(f"block {number}: the label {str(label)[:40]!r} is none of {', '.join(LABELS)}")
    if not isinstance(box, list) or len(box) != 4 or not all(map(_is_fraction, box)):
        raise ValueError(f"block {number}: `bbox` is not four numbers from 0 to 1")
    if text is not None and not isinstance(text, str):
        raise ValueError(f"block {number}: `text` is neither a text nor null")
    return Block(label, (box[0], box[1], box[2], box[3]), text or "")


def _is_fraction(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
