"""Numbers beside the score that say how an answer went wrong; meanings in docs/diagnostics.md."""

from __future__ import annotations

from loupe.types import Benchmark, Prediction, Sample


def diagnose(benchmark: Benchmark, sample: Sample, prediction: Prediction, text: str) -> dict[str, float]:
    """The diagnostics of one sample; `text` is the answer as it is scored."""
    return {"empty": float(not text.strip()), "truncated": float(prediction.outcome == "truncated")}
