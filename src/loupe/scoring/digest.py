"""Identify a score: a sha256 over all it depends on, so scoring an unchanged run again is only reading."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from loupe import __version__
from loupe.engines.adapters.steps import STEPS
from loupe.types import Benchmark, Prediction, Sample, ScoreFunction


def score_digest(benchmark: Benchmark, sample: Sample, prediction: Prediction, adapters: Sequence[str]) -> str:
    """A hex digest of one sample's score: the same as long as scoring again would give the same line.

    Covers the benchmark (title, version, measures, the file its scorer stands in), the tools it scores with, Loupe's
    version and rules, the adapters, the sample without its images, and of the prediction all that a scorer sees: text,
    class, error, finish reason, tokens, whether it is several answers, and its source.
    """
    digest = hashlib.sha256()
    for part in (
        *_scorer(benchmark, adapters),
        [sample.id, sample.group, sample.task, sample.prompt, sample.text, dict(sample.tags), sample.truth],
        dict(sample.scoring),
        [
            prediction.outcome,
            prediction.error,
            prediction.finish_reason,
            prediction.input_tokens,
            prediction.output_tokens,
            *(["joined"] if prediction.joined else []),
            *([prediction.source] if prediction.source else []),
        ],
        prediction.text,
    ):
        data = _bytes(part)
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def scorer_digest(benchmark: Benchmark, adapters: Sequence[str]) -> str:
    """A hex digest of what scores, whatever is scored."""
    return hashlib.sha256(b"\n".join(map(_bytes, _scorer(benchmark, adapters)))).hexdigest()


def _scorer(benchmark: Benchmark, adapters: Sequence[str]) -> tuple[list[str], str, str, list[str], list[str]]:
    return (
        [__version__, benchmark.title, benchmark.version, benchmark.task, *(each.name for each in benchmark.measures)],
        _library_digest(),
        _code_digest(benchmark.score),
        [name for name in STEPS if name in adapters],
        [f"{name} {version}" for name, version in sorted(benchmark.tools().items())] if benchmark.tools else [],
    )


@lru_cache(maxsize=1)
def _library_digest() -> str:
    """Of Loupe's own rules: somebody who works on them need not raise the version to see the new numbers."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for room in ("benchmarks", "features", "metrics", "scoring", "stats"):
        for file in sorted((root / room).rglob("*.py")):
            digest.update(f"{file.relative_to(root).as_posix()}\n".encode() + file.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=64)
def _code_digest(score: ScoreFunction) -> str:
    """Of the file that defines a scorer: a benchmark of the user's own changes without any version changing."""
    code = getattr(score, "__code__", None)
    try:
        return hashlib.sha256(Path(code.co_filename).read_bytes()).hexdigest() if code else ""
    except OSError:
        return ""


def _bytes(value: object) -> bytes:
    """A stable encoding; what msgspec cannot write (lone surrogates, foreign types) is written as Python shows it."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    try:
        return msgspec.msgpack.encode(value, order="deterministic", enc_hook=repr)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        return repr(value).encode("utf-8", "surrogatepass")
