"""Score each type of question in OCRBench v2 by its rule, and group the types into categories.

Tables and charts are compared by TEDS; of parsed documents, only the outline of headings and lines is compared.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from loupe.benchmarks.ocrbench_v2 import comparing
from loupe.benchmarks.ocrbench_v2.comparing import UpstreamStopsError, only_text
from loupe.benchmarks.shared.answer_texts import literal
from loupe.benchmarks.shared.ordered_trees import Node, TreeTooLargeError, tree_distance
from loupe.metrics import teds
from loupe.metrics.teds.table_tree import TedsError

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
    """The facts that a scoring rule may look at besides the answer given."""

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
            return _passage(item, given) if "简答" in item.question else comparing.handwritten(given, answers)
        case "formula recognition en" | "formula recognition cn":
            chinese = kind.endswith("cn")
            if chinese and given.lower() == "nan":
                return 0.0
            return comparing.formula(given, answers, unwrap_text=chinese)
        case "text counting en":
            return comparing.counted(given, answers, item.eval)
        case "table parsing en":
            return table(given, answers, item.question) if isinstance(item.question, str) else None
        case "table parsing cn":
            return html_table(given, answers[0])
        case "chart parsing en":
            return chart(given, answers)
        case "document parsing en" | "document parsing cn":
            return outline_similarity(given, comparing.only_text(answers))
        case "key information extraction en" | "key information mapping en":
            return comparing.fields(given, comparing.only(answers))
        case "key information extraction cn":
            return comparing.fields(given, _wrapped(literal(comparing.only(answers))))
        case "VQA with position en":
            return comparing.answer_with_box(given, answers, item.bbox)
        case "text grounding en":
            return comparing.grounding(given, answers)
        case "text spotting en":
            return comparing.spotting(given, item.bbox, item.content)
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
            return (comparing.vqa_chinese if chinese else comparing.vqa)(given, item.answers)
        case "multiple choice":
            wrapped = item.answers if chinese or isinstance(item.answers, list) else [item.answers]
            return comparing.multiple_choice(given, wrapped)
        case "case sensitive":
            return comparing.vqa_case_sensitive(given, item.answers)
    raise UpstreamStopsError("an `eval` that the official program does not know")


def _passage(item: Question, given: str) -> float:
    needs_words = item.type in ("full-page OCR cn", "text translation cn")
    return comparing.passage(given, item.answers[0], needs_words=needs_words)


def _wrapped(answer: Any) -> Any:
    return {key: value if isinstance(value, list) else [value] for key, value in answer.items()}


_CHART_FENCE = re.compile(r"```(?:python|json)?\n", re.IGNORECASE)


def html_table(prediction: str, answer: Any) -> float:
    """TEDS of the first table or body in the answer; 0.0 where there is none."""
    text = prediction.replace("\n", "")
    start = text.find("<body") if "<body" in text else text.find("<table")
    return _teds(_page(text[start:]), _page(answer)) if start >= 0 else 0.0


def markdown_table(prediction: str, answer: str) -> float:
    """TEDS of two Markdown tables."""
    return _teds(_page(_markdown_rows(prediction)), _page(_markdown_rows(answer)))


def table(prediction: str, answers: Any, question: str) -> float:
    """English table parsing: HTML or Markdown, as the question asks."""
    answer = only_text(answers)
    if "html" in question.lower():
        return html_table(prediction, answer)
    if "markdown" in question.lower():
        return markdown_table(prediction, answer)
    raise UpstreamStopsError("the question asks for neither HTML nor Markdown")


def chart(prediction: str, answers: Any) -> float:
    """TEDS of the rows key | value of a chart, a value's characters with blanks between; kept for parity."""
    answer = answers[0] if isinstance(answers, list) and answers else None
    if not isinstance(answer, dict):
        raise UpstreamStopsError("the answer is no dictionary")
    found = _chart_dictionary(prediction) if prediction else None
    return _teds(_page(_rows(found)), _page(_rows(answer))) if found else 0.0


def _chart_dictionary(text: str) -> dict[Any, Any] | None:
    blocks, place = [], 0
    while opening := _CHART_FENCE.search(text, place):
        closing = text.find("\n```", opening.end())
        if closing < 0:
            break
        blocks.append(text[opening.end() : closing])
        place = closing + 4
    text = max(blocks, key=len) if blocks else text
    text = re.sub(r"\A\s*\w+\s*=\s*", "", text.strip())
    text = re.sub(r"#[^\n]*", "", text)
    end = text.rfind("}")
    try:
        found = literal((text[: end + 1] if end >= 0 else text).strip())
    except ValueError:
        return None
    return found if isinstance(found, dict) and found else None


def _rows(values: dict[Any, Any]) -> str:
    cells = ((str(key), " ".join(str(value))) for key, value in values.items())
    return "<table>" + "".join(f"<tr><td>{key}</td><td>{value}</td></tr>" for key, value in cells) + "</table>"


def _markdown_rows(text: str) -> str:
    lines = text.strip("```markdown").strip("`").strip().split("\n")  # noqa: B005 - eats letters, as upstream
    written = []
    for line in [lines[0], *lines[2:]]:
        # A cell of blanks is one blank; a cell of tabs and the like is empty.
        cells = (each.strip() if each.strip(" ") else each[:1] for each in line.strip().split("|")[1:-1])
        written.append("".join(f"<td>{each}</td>" for each in cells))
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in written) + "</table>"


def _page(markup: str) -> str:
    markup = markup if "<table" in markup else "<table>" + markup
    markup = markup if "</table>" in markup else markup + "</table>"
    markup = markup if "<body>" in markup else f"<body>{markup}</body>"
    return markup if "<html>" in markup else f"<html>{markup}</html>"


def _teds(prediction: str, reference: str) -> float:
    try:
        return teds(prediction, reference, variant="omnidocbench")
    except TedsError:
        return 0.0


_TOKENS = re.compile(r"<bos>|<eos>|<pad>|<unk>")


def outline_similarity(prediction: str, reference: str) -> float:
    """1 − tree distance / number of nodes of the larger outline; at most 1. Raises UpstreamStopsError if too large."""
    first, second = _outline(prediction), _outline(reference)
    try:
        distance = tree_distance(first, second, lambda _: 1, _rename)
    except TreeTooLargeError as error:
        raise UpstreamStopsError(str(error)) from None
    return 1 - distance / max(_size(first), _size(second))


def clean_line(line: str) -> str:
    """Clean one line as the official program does, in its order: each rule takes exactly one white-space character."""
    line = _TOKENS.sub("", line)
    line = re.sub(r"\s##(?=\S)", "", line)
    line = re.sub(r"\\\s", r"\\", line)
    line = re.sub(r"\s\*\s\*\s", "**", line)
    line = re.sub(r"{\s", "{", line)
    line = re.sub(r"\s}", "}", re.sub(r"\s}", "}", line))
    line = re.sub(r"\\(begin|end)\s", r"\\\1", line)
    line = line.replace("\\end{table}", "\\end{table}   ")
    return re.sub(r"[\n*_]", " ", line)


def _outline(text: str) -> Node[str]:
    root, title = Node("ROOT", []), Node("TITLE", [])
    root.children.append(title)
    current = ""
    place = title
    changed = False
    for raw in text.split("\n"):
        line = clean_line(raw)
        if line.startswith("#"):
            current = line.replace("#", "")
            root.children.append(Node(current, []))
            changed = True
            continue
        if changed:
            place = title if current == "" else _first_named(root, current)
            changed = False
        place.children.append(Node(line, []))
        if line == current and current != "":
            changed = True  # a line of the heading's own words may now stand before it
    return root


def _first_named(root: Node[str], label: str) -> Node[str]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.label == label:
            return node
        waiting += reversed(node.children)
    raise AssertionError(label)


def _size(root: Node[str]) -> int:
    return 1 + sum(map(_size, root.children))


def _rename(first: str, second: str) -> int:
    """Labels with a word in them are alike, whatever the word."""
    return not (first.split() and second.split())
