"""What was read of a page's regions as one answer: Markdown, the regions as JSON, and what was lost on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from loupe.engines.adapters.steps import apply_adapters
from loupe.engines.layout.cutting import CutPage, CutRegion
from loupe.engines.layout.filtering import IMAGE, WholeBox, category_of
from loupe.engines.layout.formatting import PageRegion, ReadRegion, format_pages
from loupe.types import RETRIED, Joined, Outcome, Output, Prediction, Request

#: Said where a benchmark asks something: its answer is not in a transcript.
QUESTION = "question_not_asked"
FAILED = "layout_failed"


@dataclass(frozen=True, slots=True)
class Joiner:
    """Makes pages of regions. `steps` prepare each answer, as `images` says whether images are in the Markdown."""

    steps: Sequence[str]
    images: Literal["keep", "drop"] = "keep"

    def join(self, request: Request, page: CutPage, ended: Sequence[Prediction]) -> Joined:
        """The answer for a page, with all regions and raw answers beside it; `ended` are those of regions asked about.

        A page fails where its layout did, and where there are regions to read and none was read.
        """
        answers = dict(zip((region.index for region in page.regions if region.is_asked), ended, strict=True))
        lost = [_lost(region, answers.get(region.index)) for region in page.regions]
        losses = [loss for loss in lost if loss is not None]
        wanted = sum(region.task != "skip" for region in page.regions)
        loops = sum(answer.outcome == "repeated" for answer in answers.values())
        outcome: Outcome | None = "repeated" if loops else None
        error = ""
        if page.failed:
            outcome, error = "error", f"the layout detector failed: {page.failed}"
        elif wanted and len(losses) == wanted:
            outcome, error = _failure(losses)
        read = [self._read(region, answers.get(region.index)) for region in page.regions]
        kept = frozenset((0, region.box) for region in page.regions if _is_image(region) and self.images == "keep")
        formatted = format_pages([read], crops=kept)
        again = sum(loss["class"] in RETRIED for loss in losses)
        calls = sum(answer.attempt for answer in answers.values() if answer.outcome != "missing")
        seconds = sum(answer.seconds for answer in answers.values())
        sure = {region.box: region.score for region in page.regions if region.score is not None}
        response: dict[str, Any] = {
            "regions": [_record(region, sure) for region in formatted.pages[0]],
            "calls": calls,
            "regions_read": sum(not answer.failed for answer in answers.values()),
            "failed_regions": len(losses),
            "layout": _layout(page),
            "answers": [_answer(region, answers[region.index]) for region in page.regions if region.index in answers],
        }
        response |= {"lost": losses} if losses else {}
        response |= {"repeated_regions": loops} if loops else {}
        response |= {FAILED: page.failed} if page.failed else {}
        response |= {QUESTION: True} if request.prompt else {}
        # A refusal is paid for, too.
        replies = [one for one in answers.values() if not one.failed or one.input_tokens is not None]
        output = Output(
            text="" if error else formatted.markdown,
            finish_reason=_finish_reason(list(answers.values())),
            input_tokens=_sum([answer.input_tokens for answer in replies]),
            output_tokens=_sum([answer.output_tokens for answer in replies]),
            seconds=page.seconds + seconds,
            discarded_tokens=_discarded(list(answers.values())),
            response=response,
            endpoint=_endpoint(list(answers.values())),
        )
        return Joined(
            output=output,
            outcome=outcome,
            error=error,
            lost=0 if error else again,
            uncounted=_uncounted(list(answers.values())),
        )

    def _read(self, region: CutRegion, answer: Prediction | None) -> ReadRegion:
        content = None
        if answer is not None and not answer.failed:
            content = apply_adapters(answer.text, self.steps)
        return ReadRegion(
            index=region.index, label=region.label, content=content, box=region.box, skipped=region.task == "skip"
        )


def _is_image(region: CutRegion) -> bool:
    return region.task == "skip" or category_of(region.label) == IMAGE


def _layout(page: CutPage) -> dict[str, Any]:
    """What the detector found, and how long that took."""
    tasks = Counter(region.task for region in page.regions)
    found = {"width": page.width, "height": page.height, "detections": page.found, "seconds": round(page.seconds, 4)}
    known: dict[str, Any] = {**found, **{str(task): count for task, count in tasks.items()}}
    return known | ({"left_out": page.left_out} if page.left_out else {})


def _lost(region: CutRegion, answer: Prediction | None) -> dict[str, Any] | None:
    """A region that should have been read and was not, and why."""
    if answer is None:
        outcome, error = ("rejected", region.error) if region.error else ("", "")
    else:
        outcome, error = (answer.outcome, answer.error) if answer.failed else ("", "")
    if not outcome:
        return None
    place = {"index": region.index, "label": region.label, "bbox_2d": list(region.box)}
    return {**place, "class": outcome, "error": error[:300]}


def _failure(losses: Sequence[dict[str, Any]]) -> tuple[Outcome, str]:
    """The page's own failure: that of most of its regions, of those first that may be read another time."""
    hopeful = [loss for loss in losses if loss["class"] in RETRIED] or losses
    outcome: Outcome
    ((outcome, _),) = Counter(loss["class"] for loss in hopeful).most_common(1)
    first = next(loss["error"] for loss in hopeful if loss["class"] == outcome)
    said = f"none of the page's {len(losses)} regions could be read: {first}"
    return "error" if outcome == "missing" else outcome, said


def _record(region: PageRegion, sure: Mapping[WholeBox, float]) -> dict[str, Any]:
    """As the SDK has it, and how sure the detector was; but for the file of a crop: none is written."""
    known = {key: value for key, value in region.record().items() if key != "image_path"}
    return known | ({"score": round(sure[region.box], 4)} if region.box and region.box in sure else {})


def _answer(region: CutRegion, answer: Prediction) -> dict[str, Any]:
    """What the model gave for a region, to the letter."""
    known: dict[str, Any] = {"index": region.index, "label": region.label, "task": region.task}
    known |= {"bbox_2d": list(region.box), "class": answer.outcome}
    known |= {} if region.score is None else {"score": round(region.score, 4)}
    known |= {"text": answer.text, "seconds": answer.seconds, "attempt": answer.attempt}
    tokens = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
    known |= {key: value for key, value in tokens.items() if value is not None}
    further = {
        "finish_reason": answer.finish_reason,
        "error": answer.error[:300],
        "reasoning": answer.reasoning,
        "endpoint": answer.endpoint,
        "response": answer.response,
    }
    return known | {key: value for key, value in further.items() if value}


def _finish_reason(answers: Sequence[Prediction]) -> str | None:
    """`length` where any region was cut off: then the page is, too."""
    reasons = [answer.finish_reason for answer in answers if answer.finish_reason]
    return "length" if "length" in reasons else reasons[0] if reasons else None


def _sum(counts: Sequence[int | None]) -> int | None:
    """None where any is not known: less than all of them would pass for the whole."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _uncounted(answers: Sequence[Prediction]) -> tuple[int, int]:
    """Calls whose tokens nobody told: those that were answered, and those that were given up."""
    untold = sum(not each.failed and None in (each.input_tokens, each.output_tokens) for each in answers)
    return untold, sum(each.outcome == "timeout" for each in answers)


def _endpoint(answers: Sequence[Prediction]) -> str:
    """The server, where one alone answered."""
    named = {answer.endpoint for answer in answers if answer.endpoint}
    return str(named.pop()) if len(named) == 1 else ""


def _discarded(answers: Sequence[Prediction]) -> tuple[int, int]:
    pairs = [answer.discarded_tokens for answer in answers if answer.discarded_tokens is not msgspec.UNSET]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
