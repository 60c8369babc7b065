"""IAM handwritten lines: character and word error rates over the split, and as the mean of the lines.

Paper: Marti & Bunke, "The IAM-database", IJDAR 5 (2002). Protocol: docs/benchmarks/iam_lines.md;
rates as in jiwer 4.0.0.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from loupe.data.hub.store import default_root
from loupe.data.parquet import find_shards, rows
from loupe.data.prepared import is_prepared, read, refuse_options
from loupe.errors import DatasetError, UsageError
from loupe.metrics import character_errors, levenshtein_distance, prepare_iam_punct, rate_of_sums, word_errors
from loupe.metrics.edit import rate
from loupe.types import Benchmark, DataSet, Measure, PageSource, ParityCases, Prediction, Sample, Score

Split: TypeAlias = Literal["test", "validation", "train"]
Text: TypeAlias = Literal["iam-punct", "raw", "punct-quotes"]

_LAYOUT = "data/test.parquet (columns image, text), or the prepared form (metadata.jsonl)"


def load(
    root: Path | None, split: Split = "test", text: Text = "iam-punct", sample: int = 0, seed: int = 42
) -> Iterator[Sample]:
    """Yield the lines of one split in file order; with `sample`, that many drawn at random by `seed`.

    The id of a line is its row in the file, so the ids of a run say which were drawn. `text` names the preparation of
    both texts before they are compared.
    """
    folder = default_root("iam_lines") if root is None else root
    if sample < 0:
        raise UsageError(f"sample={sample} lines cannot be drawn", hint="-o sample=200")
    if is_prepared(folder):
        refuse_options(folder, split=split != "test")
        lines = [(row.sample_id, row.image, str(row.ground_truth)) for row in read(folder)]
        return _samples(lines, text, sample, seed)
    shards = find_shards(folder, split)
    if not shards:
        raise DatasetError(
            f"{folder}: no split {split!r} of IAM lines here; expected {_LAYOUT}",
            hint="download it: loupe data get iam_lines",
        )
    found = enumerate(rows(shards, ("text",)))
    return _samples([(f"{split}-{index:04d}", row.image(), row["text"]) for index, row in found], text, sample, seed)


def _samples(lines: Sequence[tuple[str, PageSource, str]], text: Text, size: int, seed: int) -> Iterator[Sample]:
    tags = {} if text == "iam-punct" else {"preparation": text}
    for index in draw_lines(len(lines), size, seed) if size else range(len(lines)):
        ident, image, transcription = lines[index]
        yield Sample(id=ident, images=(image,), truth=transcription, tags=tags)


def draw_lines(lines: int, size: int, seed: int) -> list[int]:
    """The rows that Python's `random.Random(seed).sample` draws, sorted.

    >>> draw_lines(2915, 200, 42)[:3]
    [2, 13, 26]
    """
    return sorted(random.Random(seed).sample(range(lines), min(size, lines)))


def score(sample: Sample, prediction: Prediction) -> list[Score]:
    """Count character and word edits; a failed prediction counts as an empty line."""
    profile = sample.tags.get("preparation", "iam-punct")
    prepare = PREPARATIONS[profile]
    found, wanted = prepare(prediction.text), prepare(sample.truth)
    characters, words = character_errors(found, wanted), word_errors(found, wanted)
    means = rate(*characters), rate(*words)
    if profile == "punct-quotes":
        means = rates_of_line(found, wanted)
    scores = [
        Score(measure="cer", counts=characters),
        Score(measure="wer", counts=words),
        Score(measure="cer_mean", counts=(means[0], 1.0)),
        Score(measure="wer_mean", counts=(means[1], 1.0)),
        Score(measure="line_accuracy", counts=(float(characters[0] == 0), 1.0)),
    ]
    if not prediction.failed:
        scores.append(Score(measure="cer_answered", counts=characters))
        scores.append(Score(measure="wer_answered", counts=words))
    return scores


def prepare_punct_quotes(text: str) -> str:
    """No space before . , ! ? ; : and none on the inner side of quotes and parentheses.

    It drops the space after and before every double quote, as it cannot tell an opening one: kept for parity.
    """
    text = re.sub(r" ([.,!?;:])", r"\1", text)
    for spaced, close in (('" ', '"'), (' "', '"'), ("( ", "("), (" )", ")")):
        text = text.replace(spaced, close)
    return text


def rates_of_line(prediction: str, reference: str) -> tuple[float, float]:
    """Character and word error rate of one line under `punct-quotes`.

    Nothing is stripped; words are what any white space separates. A line without ground truth is 0 if nothing was read,
    else 1, where jiwer counts insertions.
    """
    edits = levenshtein_distance(prediction, reference)
    word_edits, words = word_errors(" ".join(prediction.split()), " ".join(reference.split()))
    cer = edits / len(reference) if reference else float(edits > 0)
    return cer, word_edits / words if words else float(word_edits > 0)


#: What is done to both texts before they are compared.
PREPARATIONS: Mapping[str, Callable[[str], str]] = {
    "iam-punct": prepare_iam_punct,
    "raw": str.strip,
    "punct-quotes": prepare_punct_quotes,
}


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for one shipped parity case: corpus rates and mean rates of jiwer over its lines."""
    names = {"cer": "corpus_cer", "wer": "corpus_wer", "cer_mean": "mean_sample_cer", "wer_mean": "mean_sample_wer"}
    sums = {name: [0.0, 0.0] for name in names}
    for reference, hypothesis in zip(case["input"]["references"], case["input"]["hypotheses"], strict=True):
        line = Sample(id="line", truth=reference, tags={"preparation": "raw"})
        for each in score(line, Prediction(text=hypothesis)):
            if each.measure in sums:
                sums[each.measure] = [sum(pair) for pair in zip(sums[each.measure], each.counts, strict=True)]
    return [(rate(*sums[name]), case["expected"][official]) for name, official in names.items()]


def _rate(name: str, title: str) -> Measure:
    return Measure(name=name, title=title, higher_is_better=False, value=rate_of_sums)


benchmark = Benchmark(
    title="IAM handwritten lines",
    version="2002-lines",
    task="text",
    paper="https://doi.org/10.1007/s100320200071",
    data=DataSet(
        repo="Teklia/IAM-line",
        patterns=("data/test.parquet",),
        licence="MIT on the hub; the IAM database itself is for non-commercial research after registration",
        note="2,915 lines, 74 MB; --include 'data/validation.parquet' for the other split",
    ),
    parity=ParityCases(compare=verify_case, oracles={"cer_wer/corpus.jsonl": None}),
    prompt="Transcribe the handwritten line. Output ONLY the text, no explanations.",
    measures=(
        _rate("cer", "character errors, whole split"),
        _rate("wer", "word errors, whole split"),
        Measure(name="cer_mean", title="character errors, mean of lines", higher_is_better=False),
        Measure(name="wer_mean", title="word errors, mean of lines", higher_is_better=False),
        Measure(name="line_accuracy", title="lines without any error"),
        _rate("cer_answered", "character errors, of lines that got an answer"),
        _rate("wer_answered", "word errors, of lines that got an answer"),
    ),
    load=load,
    score=score,
    max_tokens=512,
)
