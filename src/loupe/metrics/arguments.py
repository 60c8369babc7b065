"""Check what metrics are called with: a wrong type raises TypeError, and the message names the argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, TypeGuard

_REMEDIES = ((bytes, "decode it first"), (PurePath, "read the file first"))


def wrong_type(name: str, value: object, wanted: str = "a text (str)") -> TypeError:
    """Return the error for an argument that is not what is wanted."""
    remedy = next((f": {text}" for kind, text in _REMEDIES if isinstance(value, kind)), "")
    return TypeError(f"{name} must be {wanted}, not {'None' if value is None else type(value).__name__}{remedy}")


def check_texts(**texts: object) -> None:
    """Raise TypeError for the first argument that is not a text."""
    for name, value in texts.items():
        if not isinstance(value, str):
            raise wrong_type(name, value)


def list_of_texts(name: str, values: object) -> list[str]:
    """Return several texts as a list: from a list, a tuple, a column of a data frame. Raises TypeError."""
    if not is_several(values):
        raise wrong_type(name, values, "a list of texts (str)")
    texts = list(values)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise wrong_type(f"{name}[{place}]", text)
    return texts


def accepted_references(prediction: object, references: object) -> list[str]:
    """Return the accepted answers of one question as a list. Raises TypeError, also if the two are swapped."""
    if isinstance(references, str) and is_several(prediction):
        raise TypeError("prediction and references are swapped: the prediction comes first, and is one text")
    check_texts(prediction=prediction)
    if isinstance(references, str):
        return [references]
    if not is_several(references):
        raise wrong_type("references", references, "a text (str) or a list of texts")
    return list_of_texts("references", references)


def words_of(name: str, value: object) -> list[str]:
    """Return the words of a text, or the list of words as it is. Raises TypeError."""
    return value.split() if isinstance(value, str) else list_of_texts(name, value)


def is_several(values: object) -> TypeGuard[Iterable[Any]]:
    """Return whether this is a list or the like, not a single text, bytes or a mapping."""
    return isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
