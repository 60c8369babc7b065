"""The prompts of model selection, word for word. Source: docs/select.md."""

from __future__ import annotations

from dataclasses import dataclass

from loupe.metrics.names import NameKind

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
    """Whether the image shows a document of this type."""
    return (
        f"Look at this document. Is it a {document_type}? Judge the document as a whole, not single words on it.\n"
        f"{_ONE_WORD}"
    )


def text_prompt(document_type: str, text: str) -> str:
    """Whether the text is that of a document of this type."""
    return (
        "Below is the text of a document, produced by OCR; it may contain recognition errors.\n"
        f"Decide whether the document is a {document_type}. {_ONE_WORD}\n\n{_document(text)}"
    )


def extraction_prompt(document_type: str, field: Field, text: str) -> str:
    """Which date and which name stand on the document."""
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
