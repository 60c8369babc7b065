"""The JSON of a service as an answer: its text, taken as Loupe's engine of that service takes it.

Source: the `[answer]` tables of the profiles in engines/profiles/services, and readers/textract.py; docs/adapters.md.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loupe.data.toml import parse_toml
from loupe.errors import EngineError
from loupe.files.foreign import read_data
from loupe.typed import decode_json
from loupe.types import UNDECODABLE

#: Longer answers, or those of more lists and objects, are not read: each takes more memory than its text.
_MOST_CHARACTERS, _MOST_PARTS = 64_000_000, 2_000_000
#: Pairs of a layout block and a table that are compared: each is compared with each.
_MOST_PAIRS = 1_000_000
_PROFILES = Path(__file__).parents[1] / "profiles" / "services"
#: Profiles whose service is known by its answers: a word that they hold, and a JMESPath that is true of them alone.
_SERVICES: Mapping[str, tuple[str, str]] = {
    "azure-layout": ('"content"', "type(analyzeResult.content) == 'string'"),
    "mistral-ocr": (
        '"pages"',
        "type(pages[0].markdown) == 'string' && type(pages[0].index) == 'number'"
        " || pages == `[]` && type(model) == 'string' && type(usage_info.pages_processed) == 'number'",
    ),
    "docling-serve": ('"md_content"', "type(document.md_content) == 'string'"),
    "ocr-space": ('"ParsedText"', "type(ParsedResults[0].ParsedText) == 'string'"),
    "paddlex": (
        '"layoutParsingResults"',
        "type(result.layoutParsingResults[0].markdown.text) == 'string' || result.layoutParsingResults == `[]`",
    ),
    "unstructured": ('"element_id"', "type(@[0].element_id) == 'string' && type(@[0].metadata) == 'object'"),
}
#: Keys of a reply of Amazon Textract, by which one without any block is known.
_TEXTRACT = frozenset({"Blocks", "DocumentMetadata", "ResponseMetadata", "JobStatus", "NextToken", "Warnings"}) | {
    *("AnalyzeDocumentModelVersion", "DetectDocumentTextModelVersion", "HumanLoopActivationOutput", "StatusMessage")
}
#: A code fence around the whole; its language is not looked at, because content decides.
_FENCED = re.compile(r"\s*(`{3,20})[^\n`]{0,40}\n(.*?)\n?\1\s*", re.DOTALL)


def without_fence(text: str) -> str:
    """Return what a code fence around the whole holds, and any other text as it is.

    >>> without_fence("```json\\n{}\\n```"), without_fence("a ``` b")
    ('{}', 'a ``` b')
    """
    if not text[:200].lstrip().startswith("```"):
        return text
    found = _FENCED.fullmatch(text)
    return found[2] if found else text


def service_json(text: str) -> str:
    """Return the text in a service's JSON, after the steps of its profile; any other answer stays.

    >>> service_json('{"status": "succeeded", "analyzeResult": {"content": "The harbour"}}')
    'The harbour'
    >>> service_json('{"total": "12.50"}')
    '{"total": "12.50"}'
    """
    if '"Blocks"' not in text and not any(mark in text for mark, _ in _SERVICES.values()):
        return text
    if (data := json_in(without_fence(text))) is None:
        return text
    try:
        found = _textract(data)
        return _by_profile(text, data) if found is None else found
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, ZeroDivisionError, EngineError):
        return text


def json_in(text: str) -> Any:
    """Return the object or list that a text is; None for any other text, and for one that is too large to be read."""
    if text.lstrip()[:1] not in ("{", "[") or len(text) > _MOST_CHARACTERS:
        return None
    if text.count("{") + text.count("[") > _MOST_PARTS:
        return None
    try:
        return decode_json(text)
    except (*UNDECODABLE, UnicodeEncodeError):
        return None


def _textract(data: Any) -> str | None:
    """Return the lines in Amazon Textract's blocks, or its layout as Markdown; None for any other data."""
    from loupe.engines.environments.readers import textract

    replies = data if isinstance(data, list) else [data]
    if not all(isinstance(reply, dict) and isinstance(reply.get("Blocks"), list) for reply in replies):
        return None
    blocks = [block for reply in replies for block in reply["Blocks"]]
    if not blocks and (
        not replies or any(reply.get("JobStatus") == "FAILED" or {*reply} - _TEXTRACT for reply in replies)
    ):
        return None
    if not all(isinstance(block, dict) and isinstance(block.get("BlockType"), str) for block in blocks):
        return None
    kinds = Counter(block["BlockType"] for block in blocks)
    if kinds["LAYOUT_TABLE"] * kinds["TABLE"] > _MOST_PAIRS:
        raise ValueError("too many tables")
    has_layout = any(kind.startswith("LAYOUT_") for kind in kinds)
    return textract.markdown_of(blocks) if has_layout else textract.text_of(blocks)


def _by_profile(text: str, data: Any) -> str:
    """Return what the profile takes that knows the data; of others the text as it is."""
    from loupe.engines.adapters.steps import apply_adapters
    from loupe.engines.services.paths import joined, look, text_at

    if isinstance(data, dict) and isinstance(data.get("content"), str) and _is_azure(data):
        data = {"analyzeResult": data}  # The SDK's `result.as_dict()`.
    for name, (_, sign) in _SERVICES.items():
        if look(sign, data) is True:
            profile = _profile(name)
            answer = profile["answer"]
            found = joined(text_at(answer["text"], data), answer.get("join", "\n\n"), answer["text"])
            return apply_adapters(found, profile.get("adapters", ()))
    return text


def _is_azure(data: Mapping[str, Any]) -> bool:
    return isinstance(data.get("pages"), list) and bool({"modelId", "model_id", "apiVersion", "api_version"} & {*data})


@functools.cache
def _profile(name: str) -> Mapping[str, Any]:
    return parse_toml(read_data(_PROFILES / f"{name}.toml").decode())
