"""The line in one place: what `loupe run`, `infer` and `score` do, callable from Python.

samples → predictions.jsonl → scores.jsonl → result.json; each arrow can be done again from the file on its left.
"""

from loupe.pipeline.existing_answers import Answers, file_answers
from loupe.pipeline.plan import Plan, Survey, make_info, open_samples, survey
from loupe.pipeline.stages import infer, run, score_again, score_run

__all__ = [
    "Answers",
    "Plan",
    "Survey",
    "file_answers",
    "infer",
    "make_info",
    "open_samples",
    "run",
    "score_again",
    "score_run",
    "survey",
]
