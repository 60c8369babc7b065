"""Answers in the formats of other programs: refused if they were filed, and a warning if an engine has given them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from loupe.engines.adapters.service_json import service_json
from loupe.engines.adapters.steps import STEPS, apply_adapters
from loupe.engines.shared.foreign_formats import foreign_format
from loupe.errors import UsageError
from loupe.runs.folder import RunFolder
from loupe.runs.places import Place
from loupe.types import FAILED, Prediction

#: Why an answer that was filed is none.
FOREIGN = "foreign"
#: Answers of a run that are looked at.
_LOOKED_AT = 200
_BETWEEN = ", not text; "


def refused_format(name: str, text: str, place: str) -> Prediction | None:
    """Return the failure of an answer that is in a foreign format, None for any other."""
    if (found := foreign_format(text)) is None:
        return None
    error = f"{place}: {found.name}{_BETWEEN}{found.advice}"
    return Prediction(sample=name, outcome="error", error=error, finish_reason=FOREIGN)


def refuse_foreign(path: Path, answers: Iterable[Prediction]) -> None:
    """Raise UsageError if all that was found are answers in foreign formats."""
    count, error = 0, ""
    for answer in answers:
        if answer.finish_reason != FOREIGN:
            return
        count, error = count + 1, error or answer.error
    if count:
        message, _, advice = error.partition(_BETWEEN)
        more = f" (and {count - 1:,} more answers)" if count > 1 else ""
        raise UsageError(f"{path}: the answers are not text: {message}{more}", hint=advice)


def with_service_json(adapters: Iterable[str], answers: Iterable[Prediction]) -> tuple[list[str], int]:
    """Return the steps, with `service_json` if an answer needs it, and how many do."""
    count = sum(service_json(answer.text) != answer.text for answer in answers)
    wanted = {*adapters, *(["service_json"] if count else [])}
    return [step for step in STEPS if step in wanted], count


def foreign_warnings(folder: RunFolder, predictions: Mapping[str, Place]) -> list[str]:
    """Return a warning for each foreign format among the answers of a run, by up to 200 of them."""
    places = [place for place in predictions.values() if place.mark not in FAILED]
    chosen = places[:: max(1, -(-len(places) // _LOOKED_AT))]
    counts: Counter[str] = Counter()
    for answer in folder.read_predictions(chosen):
        text = apply_adapters(answer.text, folder.info.adapters)
        if (found := foreign_format(text)) is not None:
            counts[f"{found.name}, not text"] += 1
        elif service_json(text) != text:
            counts[
                "JSON of a service, not text: the step service_json takes it (-o 'adapters=[\"service_json\"]')"
            ] += 1
    return [f"{count:,} of {len(chosen):,} answers looked at are {what}" for what, count in counts.items()]
