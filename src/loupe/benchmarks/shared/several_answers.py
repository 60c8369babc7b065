"""Several files that answer one sample, as one text: it travels as a JSON list, and that it is one is said beside it.

So no answer can pretend to be several.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import msgspec

from loupe.typed import encode_json, json_decoder
from loupe.types import Prediction


def join_answers(texts: Sequence[str | None]) -> str:
    """One text for all answers; None stands for a file that cannot be read."""
    if not texts:
        raise ValueError("a sample without an answer has none to join")
    return encode_json(list(texts)).decode()


def answers_of(prediction: Prediction) -> list[str | None]:
    """The answers to a sample: those that `join_answers` was given, else the text as it is, whatever stands in it."""
    if prediction.joined:
        # An adapter may have taken the list apart, and an answer that could not be scored is replaced by an empty one.
        with contextlib.suppress(msgspec.DecodeError):
            return json_decoder(list[str | None]).decode(prediction.text) or [prediction.text]
    return [prediction.text]
