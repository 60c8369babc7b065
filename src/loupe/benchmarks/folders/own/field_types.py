"""Types of fields, and when two values of a type are the same: `[fields]` of loupe.toml (docs/scoring-rules.md)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from loupe.benchmarks.folders.own.normalization import Comparison, prepare_text
from loupe.metrics import anls
from loupe.metrics.absent import is_absent
from loupe.metrics.amounts import amounts_match, read_amount
from loupe.metrics.dates import DateOrder, dates_match, normalize_date
from loupe.metrics.names import NameRule, names_match

FieldType: TypeAlias = Literal["text", "date", "amount", "id", "company", "person"]
FIELD_TYPES: tuple[FieldType, ...] = get_args(FieldType)

_AS_WRITTEN = Comparison()
_NAME_RULES: Mapping[NameRule, str] = {
    "exact": "the same name",
    "nospace": "the same name without spaces",
    "tokens": "the same person",
    "fuzzy": "the same name except for a typo",
}

#: Field name → its type.
Fields: TypeAlias = Mapping[str, FieldType]


def judge_field(
    kind: FieldType, prediction: str, reference: str, *, comparison: Comparison, order: DateOrder = "dmy"
) -> tuple[float, str]:
    """How right a field is, 0 or 1, for a text its ANLS; and the rule that says so. Nothing against nothing is right.

    A reference that is no date (no amount) is compared as a text: a draft may hold one. `comparison` says when texts
    are equal; a type looks at the value as it was written, for it needs the spaces between words.
    """
    found, wanted = prepare_text(prediction, comparison), prepare_text(reference, comparison)
    if found == wanted:
        return 1.0, same_text(prediction, reference)
    if is_absent(prediction) or is_absent(reference):
        return absent_or_not(prediction, reference)
    if kind == "text":
        return (similarity := anls(found, wanted)), alike(similarity, found, wanted, threshold=0.5)
    found, wanted = prepare_text(prediction, _AS_WRITTEN), prepare_text(reference, _AS_WRITTEN)
    if kind == "date":
        return _decided(dates_match(found, wanted, order), "the same date", found, wanted, "another date")
    if kind == "amount":
        return _decided(amounts_match(found, wanted), "the same amount", found, wanted, "another amount")
    if kind == "id":
        same = bare_id(found) == bare_id(wanted)
        return _decided(same, "the same without spaces and case", found, wanted, "another number")
    rule = names_match(found, wanted, kind)
    return _decided(rule is not None, _NAME_RULES.get(rule or "exact", ""), found, wanted, "another name")


def absent_or_not(prediction: str, reference: str) -> tuple[float, str]:
    """How right a field is if one side says that there is no value: right if both do."""
    if is_absent(prediction) and is_absent(reference):
        return 1.0, same_text(prediction, reference)
    return 0.0, _one_is_empty(prediction if is_absent(reference) else "")


def same_text(prediction: str, reference: str) -> str:
    """Why two texts that compare as equal are equal."""
    if is_absent(reference) and (prediction != reference or not reference):
        return "empty, as in the ground truth"
    if prediction == reference:
        return "as written"
    return "the same without case and spacing"


def alike(similarity: float, found: str, wanted: str, *, threshold: float = 0.0) -> str:
    """Why a text earns what it does; below the threshold it earns nothing."""
    if similarity == 1.0:
        return same_text(found, wanted)
    if not (found and wanted):
        return _one_is_empty(found)
    if similarity < threshold or not similarity:
        return f"less than {100 * threshold:.0f} % alike" if threshold else "nothing in common"
    return f"{100 * similarity:.1f} % alike"


def _decided(same: bool, rule: str, found: str, wanted: str, other: str) -> tuple[float, str]:
    if same:
        return 1.0, rule
    return 0.0, other if found and wanted else _one_is_empty(found)


def _one_is_empty(found: str) -> str:
    return "the ground truth is empty" if found else "nothing given"


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
    return kind != "amount" or is_absent(reference) or read_amount(reference) is not None
