"""Questions about images with short answers: what the QA benchmarks share."""

from loupe.benchmarks.shared.questions.asking import DOCUMENT_PROMPTS, SHORT, Prompt, Variant
from loupe.benchmarks.shared.questions.data import QuestionSet, load_questions
from loupe.benchmarks.shared.questions.faults import FAULTS, NUMBER_FAULTS
from loupe.benchmarks.shared.questions.scoring import ANLS_MEASURES, anls_points, answered, parity, question_benchmark

__all__ = [
    "ANLS_MEASURES",
    "DOCUMENT_PROMPTS",
    "FAULTS",
    "NUMBER_FAULTS",
    "SHORT",
    "Prompt",
    "QuestionSet",
    "Variant",
    "anls_points",
    "answered",
    "load_questions",
    "parity",
    "question_benchmark",
]
