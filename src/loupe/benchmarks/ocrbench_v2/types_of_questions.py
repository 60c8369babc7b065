"""Which rule scores which type of question in OCRBench v2, and the categories they make.

Source: Yuliang-Liu/MultimodalOCR @ 794c36d, `eval.py` and `get_score.py`; protocol: docs/protocols/ocrbench_v2.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from loupe.benchmarks.ocrbench_v2 import structures, tables, texts
from loupe.benchmarks.ocrbench_v2.outlines import outline_similarity
from loupe.benchmarks.ocrbench_v2.texts import UpstreamStopsError
from loupe.benchmarks.shared.literals import literal

#: Types by scored category, per language; a type's name in the data ends in " en" or " cn".
CATEGORIES: dict[str, dict[str, tuple[str, ...]]] = {
    "en": {
        "text_recognition": ("text recognition", "fine-grained text recognition", "full-page OCR"),
        "text_detection": ("text grounding", "VQA with position"),
        "text_spotting": ("text spotting",),
        "relationship_extraction": ("key information extraction", "key information mapping"),
        "element_parsing": ("document parsing", "chart parsing", "table parsing", "formula recognition"),
        "mathematical_calculation": ("math QA", "text counting"),
        "visual_text_understanding": ("document classification", "cognition VQA", "diagram QA"),
        "knowledge_reasoning": ("reasoning VQA", "science QA", "APP agent", "ASCII art classification"),
    },
    "cn": {
        "text_recognition": ("full-page OCR",),
        "relationship_extraction": ("key information extraction", "handwritten answer extraction"),
        "element_parsing": ("document parsing", "table parsing", "formula recognition"),
        "visual_text_understanding": ("cognition VQA",),
        "knowledge_reasoning": ("reasoning VQA", "text translation"),
    },
}
CATEGORY_OF = {
    f"{kind} {language}": (language, category)
    for language, categories in CATEGORIES.items()
    for category, kinds in categories.items()
    for kind in kinds
}
_ENGLISH_VQA = frozenset(
    f"{kind} en"
    for kind in (
        *CATEGORIES["en"]["knowledge_reasoning"],
        *CATEGORIES["en"]["visual_text_understanding"],
        "text recognition",
        "math QA",
    )
)

#: Types for which upstream wants a list, where a single character will not do.
_LISTED = frozenset({"table parsing en", "document parsing en", "document parsing cn"})


class Question(NamedTuple):
    """What a scoring rule may look at besides the answer given."""

    type: str
    question: Any
    answers: Any
    eval: str | None = None
    bbox: Any = None
    content: Any = None


class Points(NamedTuple):
    """Points of one item, 0..1. `ignored` items count in no category; `stop` says why upstream would end its run."""

    value: float
    ignored: bool = False
    stop: str = ""


def points(question: Question, prediction: str) -> Points:
    """Score one answer by the rule of its type. Never raises for what an answer or the data may hold."""
    try:
        value = _scored(question, prediction)
    except UpstreamStopsError as error:
        return Points(0.0, stop=str(error))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        return Points(0.0, stop=f"the data are not of the published form ({type(error).__name__})")
    return Points(0.0, ignored=True) if value is None else Points(value)


def _scored(item: Question, given: str) -> float | None:
    """Points, or None where the official program leaves the item out."""
    kind, answers = item.type, item.answers
    if kind in _LISTED and not isinstance(answers, list):
        raise UpstreamStopsError("the answers are no list")
    if kind in _ENGLISH_VQA or kind in ("cognition VQA cn", "reasoning VQA cn"):
        return _vqa(item, given)
    match kind:
        case "handwritten answer extraction cn":
            return _passage(item, given) if "简答" in item.question else texts.handwritten(given, answers)
        case "formula recognition en" | "formula recognition cn":
            chinese = kind.endswith("cn")
            if chinese and given.lower() == "nan":
                return 0.0
            return texts.formula(given, answers, unwrap_text=chinese)
        case "text counting en":
            return texts.counted(given, answers, item.eval)
        case "table parsing en":
            return tables.table(given, answers, item.question) if isinstance(item.question, str) else None
        case "table parsing cn":
            return tables.html_table(given, answers[0])
        case "chart parsing en":
            return tables.chart(given, answers)
        case "document parsing en" | "document parsing cn":
            return outline_similarity(given, texts.only_text(answers))
        case "key information extraction en" | "key information mapping en":
            return structures.fields(given, texts.only(answers))
        case "key information extraction cn":
            return structures.fields(given, _wrapped(literal(texts.only(answers))))
        case "VQA with position en":
            return structures.answer_with_box(given, answers, item.bbox)
        case "text grounding en":
            return structures.grounding(given, answers)
        case "text spotting en":
            return structures.spotting(given, item.bbox, item.content)
        case "text translation cn":
            if not given:
                return 0.0
            return _passage(item, given) if answers[0] else None
        case "fine-grained text recognition en" | "full-page OCR en" | "full-page OCR cn":
            return _passage(item, given) if given else 0.0
    raise UpstreamStopsError("a type that the official program does not know")


def _vqa(item: Question, given: str) -> float:
    chinese = item.type.endswith("cn")
    match item.eval:
        case None:
            return (texts.vqa_chinese if chinese else texts.vqa)(given, item.answers)
        case "multiple choice":
            wrapped = item.answers if chinese or isinstance(item.answers, list) else [item.answers]
            return texts.multiple_choice(given, wrapped)
        case "case sensitive":
            return texts.vqa_case_sensitive(given, item.answers)
    raise UpstreamStopsError("an `eval` that the official program does not know")


def _passage(item: Question, given: str) -> float:
    needs_words = item.type in ("full-page OCR cn", "text translation cn")
    return texts.passage(given, item.answers[0], needs_words=needs_words)


def _wrapped(answer: Any) -> Any:
    return {key: value if isinstance(value, list) else [value] for key, value in answer.items()}
