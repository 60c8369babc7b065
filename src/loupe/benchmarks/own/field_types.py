"""Types of fields, and when two values of a type are the same: `[fields]` of loupe.toml (docs/own-data.md)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from loupe.benchmarks.own.normalization import Comparison, prepare_text
from loupe.metrics import anls
from loupe.metrics.amounts import amounts_match, is_no_amount, read_amount
from loupe.metrics.dates import DateOrder, dates_match, normalize_date
from loupe.metrics.names import names_match

FieldType: TypeAlias = Literal["text", "date", "amount", "id", "company", "person"]
FIELD_TYPES: tuple[FieldType, ...] = get_args(FieldType)

_AS_WRITTEN = Comparison()

#: Field name → its type.
Fields: TypeAlias = Mapping[str, FieldType]


def field_score(
    kind: FieldType, prediction: str, reference: str, *, comparison: Comparison, order: DateOrder = "dmy"
) -> float:
    """How right a field is: 0 or 1, for a text its ANLS. Nothing against nothing is right.

    A reference that is no date (no amount) is compared as a text: a draft may hold one. `comparison` says when texts
    are equal; a type looks at the value as it was written, for it needs the spaces between words.
    """
    found, wanted = prepare_text(prediction, comparison), prepare_text(reference, comparison)
    if found == wanted:
        return 1.0
    if kind == "text":
        return anls(found, wanted)
    found, wanted = prepare_text(prediction, _AS_WRITTEN), prepare_text(reference, _AS_WRITTEN)
    if kind == "date":
        return float(dates_match(found, wanted, order))
    if kind == "amount":
        return float(amounts_match(found, wanted))
    if kind == "id":
        return float(bare_id(found) == bare_id(wanted))
    return float(names_match(found, wanted, kind) is not None)


def canonical_key(name: str) -> str:
    """A field name without case, spaces and punctuation: "Total amount" and "total_amount" are the same field."""
    return re.sub(r"[\W_]+", "_", name.casefold()).strip("_") or name


def bare_id(text: str) -> str:
    """A number of an invoice, customer or the like, without spaces and case.

    >>> bare_id("DE 12-34 a")
    'de12-34a'
    """
    return "".join(unicodedata.normalize("NFC", text).casefold().split())


def is_readable(kind: FieldType, reference: str, order: DateOrder = "dmy") -> bool:
    """Whether a reference is what its type says: only then can an answer that is written differently equal it."""
    if kind == "date":
        return normalize_date(reference, order) is not None
    return kind != "amount" or is_no_amount(reference) or read_amount(reference) is not None
