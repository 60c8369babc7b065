"""The prompts of model selection, word for word, and how an answer is read: yes or no, the date and the name.

An answer that says both yes and no, or neither, says nothing. Source: docs/select.md.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from loupe.metrics.dates import DateOrder, dates_match
from loupe.metrics.field_values import NameKind, NameRule, names_match

#: Tokens that an answer may take: one word, one word after thinking, one JSON object.
VERDICT_TOKENS, THINKING_TOKENS, EXTRACTION_TOKENS = 16, 1024, 256


def verdict_tokens(*, thinking: bool) -> int:
    """Tokens for one word: a model that thinks gets room to."""
    return THINKING_TOKENS if thinking else VERDICT_TOKENS


_ONE_WORD = "Answer with exactly one word: YES or NO."


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """The value that is wanted beside the date. Without a `key`, the date alone is."""

    key: str = ""
    description: str = ""
    kind: NameKind = "company"
    synonyms: tuple[str, ...] = ()


FIELDS = {
    "company": Field(
        key="company",
        description="the name of the company that issued the document (the seller, not the recipient)",
        kind="company",
        synonyms=("seller", "vendor", "issuer"),
    ),
    "doctor": Field(
        key="doctor",
        description="the name of the prescribing doctor (not the patient)",
        kind="person",
        synonyms=("physician", "doctor_name"),
    ),
    "date": Field(),
}
#: The field of a document type whose command names none.
USUAL_FIELDS = {"invoice": "company", "prescription": "doctor"}


def image_prompt(document_type: str) -> str:
    """Ask whether the image shows a document of this type."""
    return (
        f"Look at this document. Is it a {document_type}? Judge the document as a whole, not single words on it.\n"
        f"{_ONE_WORD}"
    )


def text_prompt(document_type: str, text: str) -> str:
    """Ask whether the text is that of a document of this type."""
    return (
        "Below is the text of a document, produced by OCR; it may contain recognition errors.\n"
        f"Decide whether the document is a {document_type}. {_ONE_WORD}\n\n{_document(text)}"
    )


def extraction_prompt(document_type: str, field: Field, text: str) -> str:
    """Ask which date and which name are on the document."""
    date = f"- date: the date on which the {document_type} was issued, as YYYY-MM-DD\n"
    if not field.key:
        wanted, answer = f"Extract one value from this {document_type}.\n{date}", '{"date": "..."}'
    else:
        wanted = f"Extract two values from this {document_type}.\n{date}- {field.key}: {field.description}\n"
        answer = f'{{"date": "...", "{field.key}": "..."}}'
    return (
        f'{wanted}Return only one JSON object: {answer}. Use "" for a value that is not in the document. '
        f"No explanation.\n\n{_document(text)}"
    )


def _document(text: str) -> str:
    return f"<document>\n{text}\n</document>"


Verdict: TypeAlias = Literal["yes", "no"]

_WORDS: dict[str, Verdict] = {
    **dict.fromkeys(("yes", "true", "ja", "oui", "si", "sí"), "yes"),
    **dict.fromkeys(("no", "false", "nein", "non"), "no"),
}
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b")
_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_CLOSE = re.compile("</think>", re.IGNORECASE)
_FENCE = re.compile(r"```[A-Za-z]{0,20}")
_EMPHASIS = re.compile(r"[*_`~]")
_KEYS = ("match", "is_match", "isMatch", "answer")
#: A yes and a no within so many words: the answer has not decided.
_FIRST_WORDS = 5
#: What a model says beyond this is no answer of one word any more; nor is a JSON object of that length.
LONGEST = 100_000


def without_thinking(answer: str) -> str:
    """The answer without its `<think>` blocks, and without code fences around what is left.

    A block that never closes takes everything to the end with it; one that never opened (the chat template did that),
    everything up to its close.
    """
    text = _THINKING.sub("", answer)
    return _FENCE.sub("", text[_last_close(text) :]).strip()


def _last_close(text: str) -> int:
    """Behind the last `</think>` that is left without its opening."""
    closes = [found.end() for found in _CLOSE.finditer(text)]
    return closes[-1] if closes else 0


def parse_verdict(answer: str, document_type: str) -> Verdict | None:
    """Read what the answer says, None if it cannot be told.

    A JSON object with a boolean, or a yes or no, under a known key wins; else the first word that says yes or no does.

    >>> parse_verdict("<think>No?</think>**YES**.", "invoice"), parse_verdict('{"is_invoice": false}', "invoice")
    ('yes', 'no')
    """
    text = without_thinking(answer)[:LONGEST]
    if (found := _from_json(text, document_type)) is not None:
        return found
    plain = unicodedata.normalize("NFKC", _EMPHASIS.sub("", text)).casefold()
    first = " ".join(plain.split(maxsplit=_FIRST_WORDS)[:_FIRST_WORDS])
    if len({_WORDS[word] for word in _WORD.findall(first)}) > 1:
        return None
    word = _WORD.search(plain)
    return _WORDS[word[0]] if word else None


def _from_json(text: str, document_type: str) -> Verdict | None:
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for key in (*_KEYS, f"is_{document_type}", f"is_{document_type.replace(' ', '_')}"):
        value = found.get(key)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str) and value.strip().casefold() in _WORDS:
            return _WORDS[value.strip().casefold()]
    return None


#: Keys under which models give the name, whatever was asked for.
_NAME_KEYS = ("secondaryfield", "secondary_field", "name")
#: Bounds for hostile answers: characters looked at, objects tried.
_LONGEST, _MOST_OBJECTS = 20_000, 8
_STRINGS_AND_BRACES = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)
#: A text in double quotes, or in single ones, which end where the value does; either may lack its end.
_TOKENS = re.compile(
    r'"(?:[^"\\]|\\.)*(?:"|\Z)'
    r"|'(?:[^'\\]|\\.|'(?!\s{0,9}(?:[,:}\]]|\Z)))*(?:'|\\?\Z)"
    r"|[A-Za-z]+|\s+|.",
    re.DOTALL,
)
_CLOSING = {"{": "}", "[": "]"}
_PYTHON_WORDS = {"None": "null", "True": "true", "False": "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The date and name of an answer; both are empty, and `parsable` is not set, if no JSON object was found."""

    date: str = ""
    name: str = ""
    parsable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Result of an extraction: right or not, and by which rule the name is. A value that the truth lacks counts as
    right.
    """

    date: bool
    name: bool
    rule: NameRule | None = None


def parse_extraction(answer: str, field: Field) -> Extraction:
    """The two values in an answer: those of its first JSON object, mended where commas, quotes or a brace are wrong."""
    found = _first_object(without_thinking(answer)[:_LONGEST])
    if found is None:
        return Extraction()
    folded = {str(key).strip().casefold(): value for key, value in found.items()}
    keys = (field.key, *_NAME_KEYS, *field.synonyms) if field.key else ()
    names = (_text(folded.get(key)) for key in keys)
    return Extraction(date=_text(folded.get("date")), name=next(filter(None, names), ""), parsable=True)


def match_extraction(
    prediction: Extraction, date: str, name: str, *, field: Field, date_order: DateOrder = "dmy"
) -> Match:
    """Compare date and name with those of the ground truth."""
    rule = names_match(prediction.name, name, field.kind) if name and field.key else None
    return Match(
        date=not date or dates_match(prediction.date, date, date_order),
        name=not (name and field.key) or rule is not None,
        rule=rule,
    )


def _first_object(text: str) -> dict[str, Any] | None:
    """The first JSON object in a text that can be read or mended; a few are tried at most."""
    start = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            break
        end = _end_of_object(text, start)
        found = _read(text[start : end or len(text)])
        if found is not None:
            return found
        start = text.find("{", start + 1)
    return None


def _end_of_object(text: str, start: int) -> int:
    """Behind the brace that closes the one at `start`; 0 where none does."""
    depth = 0
    for found in _STRINGS_AND_BRACES.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    return 0


def _read(written: str) -> dict[str, Any] | None:
    for text, is_mended in ((written, False), (mended(written), True)):
        try:
            found = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            continue
        # A brace that something unreadable follows is not mended into an object of nothing.
        if isinstance(found, dict) and (found or not is_mended):
            return found
    return None


def mended(written: str) -> str:
    """JSON with what models get wrong put right: single quotes, Python's words, commas at an end, missing closings.

    One pass, in linear time; what is wrong otherwise stays so.

    >>> mended("{'a': None, 'b': [1, 2,")
    '{"a": null, "b": [1, 2]}'
    """
    parts: list[str] = []
    closings: list[str] = []
    for found in _TOKENS.finditer(written):
        token = found[0]
        if token[0] in "\"'":
            parts.append(_as_string(token))
            continue
        if token in _CLOSING:
            closings.append(_CLOSING[token])
        elif token in "}]":
            _drop_comma(parts)
            if closings:
                closings.pop()
        parts.append(_PYTHON_WORDS.get(token, token))
    _drop_comma(parts)
    return "".join([*parts, *reversed(closings)])


def _as_string(token: str) -> str:
    """A quoted text, in single or double quotes, perhaps without its end, as JSON has it."""
    quote = token[0]
    inner = token[1:-1] if len(token) > 1 and token.endswith(quote) else token[1:].removesuffix("\\")
    if quote == "'":
        inner = inner.replace("\\'", "'").replace('\\"', '"').replace('"', '\\"')
    return f'"{inner}"'


def _drop_comma(parts: list[str]) -> None:
    """Take away a comma at the end, and the space behind it."""
    end = len(parts)
    while end and parts[end - 1].isspace():
        end -= 1
    if end and parts[end - 1] == ",":
        del parts[end - 1 :]


def _text(value: Any) -> str:
    """A value as text: of a list its first entry, null as nothing, what is no text as Python writes it."""
    if isinstance(value, list):
        value = value[0] if value else ""
    if value is None:
        return ""
    try:
        return value.strip() if isinstance(value, str) else str(value)
    except (ValueError, RecursionError):
        return ""
