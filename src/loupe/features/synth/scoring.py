"""Scores of answers to generated pages: by track, by fact, the headline, and the figures read off the ladders.

The headline is the mean of the tracks, each counted once (docs/synth.md#headline). Facts are judged by rules that
forgive misread letters and nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from rapidfuzz import fuzz

from loupe.benchmarks.folders.own.normalization import (
    Comparison,
    plain_page,
    prepare_formula,
    prepare_text,
    score_teds,
    separate_words,
)
from loupe.benchmarks.shared.answer_texts import remove_fence
from loupe.benchmarks.shared.mean_of_parts import mean_of_parts
from loupe.explanation import Fact as ShownFact
from loupe.features.synth.page import Fact, Truth
from loupe.features.synth.texts import RUNGS, language, language_codes
from loupe.features.synth.tracks.running_text import CLEAN, UNORDERED
from loupe.features.synth.typeset.typesetter import FACES, face_of, missing
from loupe.metrics import (
    character_errors,
    levenshtein_distance,
    normalized_edit_similarity,
    rate_of_sums,
    teds_struct,
    word_errors,
)
from loupe.metrics.teds.table_tree import TedsError
from loupe.stats import curves
from loupe.stats.proportions import exact_interval
from loupe.types import Conclusion, Measure, Prediction, Sample, SampleScores, Score, Scored, Values

#: Track → what its own measure is. Each lies between 0 and 1, and higher is better.
TRACK_TITLES = {
    "plain": "plain pages",
    "prior": "text without meaning",
    "detail": "exact values",
    "legibility": "small, faint print",
    "density": "dense pages",
    "degrade": "degraded pages",
    "tables": "tables",
    "formulas": "formulas",
    "order": "reading order",
    "languages": "languages",
    "traps": "traps passed",
}


def _rate(name: str, title: str) -> Measure:
    return Measure(name=name, title=title, higher_is_better=False, value=rate_of_sums)


MEASURES = (
    Measure(name="overall", title="mean of the tracks", of_parts=True),
    *(Measure(name=name, title=title) for name, title in TRACK_TITLES.items()),
    _rate("cer", "character errors"),
    _rate("wer", "word errors"),
    Measure(name="text_similarity", title="text similarity"),
    Measure(name="teds_structure", title="structure of tables (TEDS-S)"),
    Measure(name="corrected", title="wrong check digits put right", higher_is_better=False),
    Measure(name="prior_reliance", title="CER of random letters − CER of natural text", higher_is_better=False),
    _rate("cer_natural", "character errors, natural text"),
    _rate("cer_random", "character errors, random letters"),
)


def summarize(values: Values) -> Values:
    """`overall` over the tracks that are there, and what an engine owes to knowing the language; numbers or draws."""
    found: dict[str, Any] = {}
    if (overall := mean_of_parts(values, tuple(TRACK_TITLES))) is not None:
        found["overall"] = overall
    if values.get("cer_natural") is not None and values.get("cer_random") is not None:
        found["prior_reliance"] = values["cer_random"] - values["cer_natural"]
    return found


#: An answer to an empty page may hold this many letters and digits: a speck is read as a dot or two by anybody.
_LETTERS_OF_NOTHING = 3
#: What is no text of a page: pictures and comments, as Markdown and HTML write them. None is looked for beyond
#: the beginning of the next: an answer may be a long row of beginnings.
_NO_TEXT = re.compile(r"!\[[^\]\[]*\]\([^)\[]*\)|<!--(?:(?!<!--).)*?-->|<img[^<>]*>", re.DOTALL)
_WORD = re.compile(r"\w+")
#: Words this long may have one wrong letter and still be told from others.
_LONG = 6


def judged(answer: str, facts: tuple[Fact, ...]) -> list[dict[str, Any]]:
    """Each fact with whether it holds, and what was found: `{"kind", "text", "held", "found"}`."""
    words = words_of(answer)
    found = []
    for fact in facts:
        held, seen = _RULES[fact.kind](answer, words, fact)
        found.append({"kind": fact.kind, "text": fact.text[:200], "held": held, "found": seen})
    return found


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, in order, without punctuation and markup."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold().replace("_", " "))


def _nothing(answer: str, words: list[str], fact: Fact) -> tuple[bool, str]:
    letters = sum(map(len, words_of(_NO_TEXT.sub("", answer))))
    return letters <= _LETTERS_OF_NOTHING, f"{letters} letters and digits"


def _absent(answer: str, words: list[str], fact: Fact) -> tuple[bool, str]:
    wanted = words_of(fact.text)
    places = range(len(words) - len(wanted) + 1)
    count = sum(words[place : place + len(wanted)] == wanted for place in places)
    return count == 0, "found once" if count == 1 else f"found {count} times"


def _read(answer: str, words: list[str], fact: Fact) -> tuple[bool, str]:
    """The share of the words of the text that the answer has, each as often as it stands there."""
    wanted = Counter(words_of(fact.text))
    there = (wanted & Counter(words)).total()
    share = there / wanted.total() if wanted else 1.0
    return share >= fact.least, f"{there} of {wanted.total()} words"


def _times(words: list[str], fact: Fact) -> int:
    wanted = words_of(fact.text)[0]
    return sum(_alike(word, wanted) for word in words)


def _alike(word: str, wanted: str) -> bool:
    if word == wanted or len(wanted) < _LONG or abs(len(word) - len(wanted)) > 1:
        return word == wanted
    return levenshtein_distance(word, wanted) <= 1


def _exactly(answer: str, words: list[str], fact: Fact) -> tuple[bool, str]:
    count = _times(words, fact)
    return count == fact.count, f"found {count} times, printed {fact.count} times"


def _at_most(answer: str, words: list[str], fact: Fact) -> tuple[bool, str]:
    count = _times(words, fact)
    return count <= fact.count, f"found {count} times, printed {fact.count} times"


_RULES = {"nothing": _nothing, "absent": _absent, "read": _read, "exactly": _exactly, "at most": _at_most}
_ASKED = {
    "nothing": "nothing is read",
    "absent": "not in the answer:",
    "read": "read, at least in part:",
    "exactly": "in every row, and no oftener:",
    "at most": "no oftener than printed:",
}


def shown_facts(sample: Sample, prediction: Prediction, scores: SampleScores) -> list[ShownFact]:
    """The facts of a trap for the page of a sample, each with what was found; none of other pages."""
    return [
        ShownFact(
            ident=f"{sample.id}-{number}",
            kind=fact["kind"],
            category=sample.tags.get("kind", ""),
            document=sample.id,
            passed=fact["held"] and not prediction.failed,
            words=(("", _ASKED[fact["kind"]]), *((("text", fact["text"]),) if fact["text"] else ())),
            why="" if fact["held"] else fact["found"],
        )
        for number, fact in enumerate(judged(prediction.text, sample.truth.facts), 1)
    ]


#: Two ends of the ladder `prior`, whose error rates are measures of their own.
RELIANCE = {"natural": "cer_natural", "random letters": "cer_random"}
#: A block counts as found where it is at least this alike to a piece of the answer, of 100.
_FOUND = 55.0
_AS_IT_IS, _WITHOUT_SPACE = Comparison(), Comparison(whitespace="ignore")

Scorer: TypeAlias = Callable[[str, Sample, Truth], list[Score]]


def score(sample: Sample, prediction: Prediction) -> Scored | list[Score]:
    """The measure of the track between 0 and 1, and what stands beside it. A failed answer earns nothing."""
    truth: Truth = sample.truth
    track = sample.tags["track"]
    if track == "traps":
        facts = judged(prediction.text, truth.facts)
        passed = all(fact["held"] for fact in facts) and not prediction.failed
        return Scored(scores=[Score(measure="traps", counts=(float(passed), 1.0))], details={"facts": facts})
    return _SCORERS.get(track, _text)(prediction.text, sample, truth)


def _template(answer: str, sample: Sample, truth: Truth) -> list[Score]:
    """A design of the user's: its values as those of `detail`, its text as that of a plain page."""
    own = Score(measure="plain", counts=_text(answer, sample, truth)[0].counts)
    return [*_detail(answer, sample, truth), own, *_text(answer, sample, truth)[1:]]


def _text(answer: str, sample: Sample, truth: Truth) -> list[Score]:
    """Accuracy is 1 − CER of the page, and 0 if there are more edits than characters."""
    comparison = _AS_IT_IS if truth.glue else _WITHOUT_SPACE
    found, wanted = prepare_text(remove_fence(answer), comparison), prepare_text(truth.text, comparison)
    edits = character_errors(found, wanted)
    accuracy = max(0.0, 1.0 - edits[0] / max(edits[1], 1.0))
    scores = [
        Score(measure=sample.tags["track"], counts=(accuracy, 1.0)),
        Score(measure="cer", counts=edits),
        Score(measure="wer", counts=word_errors(separate_words(found), separate_words(wanted))),
        Score(measure="text_similarity", counts=(normalized_edit_similarity(found, wanted), 1.0)),
    ]
    rung = RELIANCE.get(sample.tags["rung"]) if sample.tags["track"] == "prior" else None
    return [*scores, Score(measure=rung, counts=edits)] if rung else scores


def _detail(answer: str, sample: Sample, truth: Truth) -> list[Score]:
    """Each value: whether the answer has it exactly, white space aside; and whether a wrong one was put right."""
    found = "".join(answer.split())
    scores = []
    for field in truth.fields:
        value = "".join(field.value.split())
        kind = "wrong check digit" if field.corrected else "value"
        tags = {"field": field.name, "value": kind}
        scores.append(Score(measure="detail", counts=(float(value in found), 1.0), unit=field.name, tags=tags))
        if field.corrected:
            mended = value not in found and "".join(field.corrected.split()) in found
            scores.append(Score(measure="corrected", counts=(float(mended), 1.0), unit=field.name))
    return scores


def _table(answer: str, sample: Sample, truth: Truth) -> list[Score]:
    """TEDS of the first table of the answer, and TEDS of its structure alone."""
    teds = score_teds(answer, truth.html, _AS_IT_IS)
    try:
        pages = plain_page(answer, _AS_IT_IS), plain_page(truth.html, _AS_IT_IS)
        structure = max(0.0, teds_struct(*pages, variant="omnidocbench"))
    except TedsError:
        structure = 0.0
    return [
        Score(measure="tables", counts=teds.counts, tags=teds.tags),
        Score(measure="teds_structure", counts=(structure, 1.0)),
    ]


def _formula(answer: str, sample: Sample, truth: Truth) -> list[Score]:
    similarity = normalized_edit_similarity(prepare_formula(answer), prepare_formula(truth.latex))
    return [Score(measure="formulas", counts=(similarity, 1.0))]


def _order(answer: str, sample: Sample, truth: Truth) -> list[Score]:
    """Likeness of the order of the blocks in the answer to that on the page; a lost block is one edit."""
    found = prepare_text(answer, _AS_IT_IS)
    places: list[tuple[float, int]] = []
    for number, block in enumerate(truth.blocks):
        match = fuzz.partial_ratio_alignment(prepare_text(block, _AS_IT_IS), found, score_cutoff=_FOUND)
        if match is not None and found:
            places.append((match.dest_start, number))
    read = "".join(chr(0x100 + number) for _, number in sorted(places))
    true = "".join(chr(0x100 + number) for number in range(len(truth.blocks)))
    value = 1.0 - levenshtein_distance(read, true) / max(len(true), 1)
    return [Score(measure="order", counts=(max(0.0, value), 1.0)), *_text(answer, sample, truth)[1:]]


_SCORERS: Mapping[str, Scorer] = {
    "detail": _detail,
    "tables": _table,
    "formulas": _formula,
    "order": _order,
    "template": _template,
}


#: The keys of `Conclusion.figures`.
LADDERS, TRAPS, CORRECTED = "ladders", "traps", "corrected"
#: The error rate from which print counts as illegible.
ILLEGIBLE = 0.05
_CER = Measure(name="cer", higher_is_better=False, value=rate_of_sums)
_ACCURACY = Measure(name="accuracy")
_RANKS = {rung: float(rank) for rank, rung in enumerate(RUNGS)}


@dataclass(frozen=True, slots=True)
class _Ladder:
    """The scores on a ladder, its axis, and the figures that are read off it."""

    score: str
    measure: Measure
    axis: str
    hard_is_high: bool = True
    figures: tuple[str, ...] = ()


def _ladder(track: str, kind: str) -> _Ladder | None:
    if track == "prior":
        return _Ladder("cer", _CER, "rung", figures=("reliance",))
    if track == "legibility" and kind == "size":
        return _Ladder("cer", _CER, "x-height in px", hard_is_high=False, figures=("limit",))
    if track == "legibility":
        return _Ladder("cer", _CER, "contrast", hard_is_high=False, figures=("limit",))
    if track == "density":
        return _Ladder("density", _ACCURACY, "tokens", figures=("collapse",))
    if track == "degrade" and kind == UNORDERED:
        return _Ladder("degrade", _ACCURACY, "position")
    if track == "degrade" and kind != CLEAN:
        return _Ladder("degrade", _ACCURACY, "severity", figures=("area", "half_loss"))
    return None


def conclude(rows: Sequence[SampleScores]) -> Conclusion:
    """Figures `ladders`, `traps` and `corrected`: docs/synth.md#figures."""
    ladders = [_curve(track, kind, members) for (track, kind), members in sorted(_members(rows).items())]
    figures: dict[str, Any] = {LADDERS: [each for each in ladders if each is not None]}
    if traps := _traps(rows):
        figures[TRAPS] = traps
    wrong = [score.counts[0] for row in rows for score in row.scores if score.measure == "corrected"]
    if wrong:
        figures[CORRECTED] = _share(int(sum(wrong)), len(wrong), "corrected")
    return Conclusion(figures=figures, warnings=_left_out(rows))


def _members(rows: Sequence[SampleScores]) -> Mapping[tuple[str, str], list[SampleScores]]:
    """The pages of each ladder; a clean page is the first rung of every degradation that its base page has."""
    found: dict[tuple[str, str], list[SampleScores]] = defaultdict(list)
    for row in rows:
        track, kind = row.tags.get("track", ""), row.tags.get("kind", "")
        if _ladder(track, kind) is not None:
            found[track, kind].append(row)
    clean = [row for row in rows if row.tags.get("kind") == CLEAN and row.tags.get("track") == "degrade"]
    for (track, _), members in found.items():
        bases = {_base(row.sample) for row in members}
        members += [row for row in clean if _base(row.sample) in bases] if track == "degrade" else []
    return found


def _curve(track: str, kind: str, members: Sequence[SampleScores]) -> dict[str, Any] | None:
    ladder = _ladder(track, kind)
    assert ladder is not None
    rungs = [
        (_base(row.sample), _rank(row), score.counts)
        for row in members
        for score in row.scores
        if score.measure == ladder.score
    ]
    places = _places(rungs, hard_is_high=ladder.hard_is_high)
    if len(places) < 2:
        return None
    found = curves.curve(ladder.measure, rungs, places)
    samples: dict[float, list[str]] = defaultdict(list)
    names: dict[float, str] = {}
    for row in members:
        samples[_rank(row)].append(row.sample)
        names[_rank(row)] = row.tags["rung"]
    points = [
        {"rung": names[place], "rank": place, **_plain(value), "bases": value.n, "samples": samples[place]}
        for place, value in zip(places, curves.points(found), strict=True)
    ]
    about = {"track": track, "kind": kind, "measure": ladder.measure.name, "axis": ladder.axis}
    return {**about, "points": points, "summary": {name: _figure(name, found) for name in ladder.figures}}


def _figure(name: str, found: curves.Curve) -> Any:
    """A figure of a curve as plain values, by its name in `summary`."""
    if name == "reliance":
        return [msgspec.to_builtins(each) for each in curves.reliance(found)]
    if name == "limit":
        return msgspec.to_builtins(curves.limit(found, ILLEGIBLE))
    if name == "area":
        return msgspec.to_builtins(curves.area(found))
    return msgspec.to_builtins(curves.half_loss(found, log=name == "collapse"))


def _plain(value: Any) -> dict[str, Any]:
    return {"value": value.value, "low": value.low, "high": value.high}


def _places(rungs: Sequence[curves.Rung], *, hard_is_high: bool) -> list[float]:
    """The rungs that as many base pages have as any: a ladder that is only begun on a base page adds none."""
    bases: dict[float, set[str]] = defaultdict(set)
    for base, place, _ in rungs:
        bases[place].add(base)
    most = max(map(len, bases.values()), default=0)
    return sorted((place for place, found in bases.items() if len(found) == most), reverse=not hard_is_high)


def _base(sample: str) -> str:
    """The base page of a sample: the first two parts of its id."""
    return "-".join(sample.split("-")[:2])


def _rank(row: SampleScores) -> float:
    rung = row.tags["rung"]
    return _RANKS[rung] if row.tags["track"] == "prior" else float(rung)


def _traps(rows: Sequence[SampleScores]) -> dict[str, Any]:
    passed: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for score in row.scores:
            if score.measure == "traps":
                passed[row.tags["kind"]].append(score.counts[0])
    return {kind: _share(int(sum(each)), len(each), "passed") for kind, each in passed.items()}


def _share(count: int, n: int, name: str) -> dict[str, Any]:
    low, high = exact_interval(count, n) or (None, None)
    return {name: count, "n": n, "low": low, "high": high}


def _left_out(rows: Sequence[SampleScores]) -> list[str]:
    """The fonts that are not here, what was left out for them, and the command that brings them."""
    read = {row.tags["kind"] for row in rows if row.tags.get("track") == "languages"}
    there = {code for code in language_codes() if not missing([face_of(code)])}
    found = []
    if read and read >= there and there < set(language_codes()):
        for code in sorted(set(language_codes()) - there):
            face = face_of(code)
            found.append(f"left out: {language(code).name} ({code}), whose font {face.family} is not installed")
        packages = sorted(missing(face_of(code) for code in language_codes()))
        found.append(f"for these languages: sudo apt-get install {' '.join(packages)}")
    if any(row.tags.get("track") == "plain" for row in rows) and (lacking := missing(FACES)):
        names = ", ".join(name for families in lacking.values() for name in families)
        found.append(f"plain pages without {names}: sudo apt-get install {' '.join(sorted(lacking))}")
    return found
