"""Score short answers: ANLS, relaxed accuracy (ChartQA), VQA accuracy (TextVQA), exact match, containment.

Papers: Biten et al., "Scene Text Visual Question Answering", ICCV 2019; Masry et al., "ChartQA", ACL 2022; Antol et
al., "VQA", ICCV 2015. Protocol: docs/protocols/qa.md and docs/benchmarks/nanonets_kie.md, with the official
programs that each variant follows. Range 0..1, higher is better; the unit of ANLS is the Unicode code point, no
NFC.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from loupe.metrics.arguments import accepted_references, check_texts, wrong_type
from loupe.metrics.edit import levenshtein_distance, normalized_edit_similarity

#: Signs that are deleted or become blanks, in the order in which that happens.
_SIGNS = ';/[]"{}()=+\\_-><@`,?!'
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ARTICLES = ("a", "an", "the")
_WORDS = {word: str(number) for number, word in enumerate(_NUMBERS)} | {"none": "0"} | dict.fromkeys(_ARTICLES, "")
#: Contractions that are found without their apostrophes.
_PLAIN = """
ain't aren't can't couldn't could've didn't doesn't don't hadn't hasn't haven't he'd he's how'd how'll how's
isn't it'd it'll ma'am mightn't might've mustn't must've needn't not've o'clock oughtn't shan't shouldn't
should've somebody'll somebody's someone'd someone'll someone's something'd something'll that's there'd
there're there's they'd they'll they're they've 'twas wasn't weren't we've what'll what're what's what've
when's where'd where's where've who'd who'll who's who've why'll why're why's won't wouldn't would've y'all
you'd you'll you're you've
"""
#: Those with two apostrophes, found with one of them left out.
_DOUBLE = """
couldn't've hadn't've he'd've it'd've mightn't've she'd've shouldn't've somebody'd've someone'd've something'd've
there'd've they'd've we'd've who'd've wouldn't've you'd've
"""
#: Spellings that follow neither rule, the odd ones among them as the official table has them.
_ODD = {
    "'ow'sat": "'ow's'at",
    "'ows'at": "'ow's'at",
    "ow's'at": "'ow's'at",
    "let's": "let's",
    "she's": "she's",
    "somebody'd": "somebodyd",
    "y'all'dve": "y'all'd've",
    "y'alld've": "y'all'd've",
    "yall'd've": "y'all'd've",
    "y'allll": "y'all'll",
    "yall'll": "y'all'll",
}
_DIGIT_COMMA_DIGIT = re.compile(r"\d,\d")
_DIGIT_COMMAS_DIGIT = re.compile(r"\d,+\d")
_STOP_BETWEEN_DIGITS = re.compile(r"(?<!\d)\.(?!\d)")
_STOP_BEFORE_DIGIT = re.compile(r"\.(?!\d)")
#: The official programs pass a flag where the number of replacements belongs; it is 32.
_MOST_STOPS = 32


def _contractions() -> dict[str, str]:
    found = {word.replace("'", ""): word for word in _PLAIN.split()}
    for word in _DOUBLE.split():
        start, middle, end = word.split("'")
        found |= {f"{start}{middle}'{end}": word, f"{start}'{middle}{end}": word}
    return found | _ODD


_CONTRACTIONS = _contractions()


def number_in(text: str) -> float | None:
    """The number that a whole text is, as the official rule of ChartQA reads it; None if it is none.

    Python's `float` decides, so "1e3", "１２" and "nan" are numbers, "1,000" and "$5" are not. "12 %" is 0.12.
    """
    try:
        return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def relaxed_accuracy(prediction: str, reference: str) -> float:
    """Return 1.0 if two numbers differ by at most 5 % of the reference, or two texts are equal but for case; else 0.0.

    Higher is better. Numbers are texts, as Python's `float` reads them, or with "%": "1,000" is none. A reference that
    is the number zero is compared as a text. Source: ChartQA, docs/protocols/qa.md#relaxed.

    >>> relaxed_accuracy("1950", "2019"), relaxed_accuracy("0.0", "0")
    (1.0, 0.0)
    """
    check_texts(prediction=prediction, reference=reference)
    found, wanted = number_in(prediction), number_in(reference)
    if found is not None and wanted:
        return float(abs(found - wanted) / abs(wanted) <= 0.05)
    return float(prediction.lower() == reference.lower())


def exact_match(prediction: str, references: str | Sequence[str]) -> float:
    """Return 1.0 if the answer is one of the references, except for case and white space around both; else 0.0.

    Higher is better. Source: VLMEvalKit's rule for OCR-VQA, docs/protocols/qa.md.

    >>> exact_match(" 13 boats", ["thirteen", "13 Boats"])
    1.0
    """
    options = accepted_references(prediction, references)
    found = prediction.strip().lower()
    return float(any(found == reference.strip().lower() for reference in options))


def contains_answer(prediction: str, references: str | Sequence[str]) -> float:
    """Return 1.0 if one of the references occurs in the answer, except for case and runs of white space; else 0.0.

    Higher is better. An empty reference occurs in an empty answer alone. Source: docs/protocols/qa.md.

    >>> contains_answer("It shows 13  boats.", "13 Boats")
    1.0
    """
    options = accepted_references(prediction, references)
    found = " ".join(prediction.lower().split())
    wanted = (" ".join(reference.lower().split()) for reference in options)
    return float(any(text in found if text else not found for text in wanted))


def vqa_text(text: str) -> str:
    """Return a text as VLMEvalKit compares it: no signs and articles, number words as digits, contractions alike.

    Apply it to both sides. Source: docs/protocols/qa.md#vqa.

    >>> vqa_text("The two boats, dont you see?")
    "2 boats don't you see"
    """
    check_texts(text=text)
    text = text.replace("\n", " ").replace("\t", " ").strip()
    text = _without_signs(text, _DIGIT_COMMA_DIGIT)
    return _in_plain_words(_STOP_BETWEEN_DIGITS.sub("", text, count=_MOST_STOPS))


def evalai_text(text: str) -> str:
    """Return a text as lmms-eval compares it: as `vqa_text`, but commas, question marks and 's are replaced first.

    Apply it to both sides. Source: EvalAI, docs/protocols/qa.md#vqa.

    >>> evalai_text("The two boats, dont you see?")
    "2 boats don't you see"
    """
    check_texts(text=text)
    text = text.lower().replace(",", "").replace("?", "").replace("'s", " 's").strip()
    text = text.replace("\n", " ").replace("\t", " ").strip()
    text = _without_signs(text, _DIGIT_COMMAS_DIGIT)
    return _in_plain_words(_STOP_BEFORE_DIGIT.sub("", text, count=_MOST_STOPS))


def _without_signs(text: str, grouped: re.Pattern[str]) -> str:
    """Each sign is deleted if it has a blank beside it, or any number has a comma in it; else it becomes a blank."""
    numbers = grouped.search(text) is not None
    result = text
    for sign in _SIGNS:
        if sign in text:
            deleted = numbers or f"{sign} " in text or f" {sign}" in text
            result = result.replace(sign, "" if deleted else " ")
    return result


def _in_plain_words(text: str) -> str:
    words = (_WORDS.get(word, word) for word in text.lower().split())
    return " ".join(_CONTRACTIONS.get(word, word) for word in words if word)


def vqa_accuracy(prediction: str, references: Sequence[str], *, process: Callable[[str], str] = vqa_text) -> float:
    """Return the agreement with several people: `references` has the answer of each of them.

    Range 0..1, higher is better: for each person, the number of others who gave this answer, over 3 and at most 1; the
    mean. A list of one answer therefore gives 0.0: `exact_match` compares with one. `process` prepares both sides.
    Source: Antol et al. 2015, docs/protocols/qa.md#vqa. Raises TypeError for a single text, ValueError for an empty
    list.

    >>> round(vqa_accuracy("Boats", ["boats", "the boats", "ships", "a sail", "sea"]), 3)
    0.533
    """
    if isinstance(references, str) and isinstance(prediction, str):
        raise wrong_type("references", references, "a list of several people's answers")
    options = accepted_references(prediction, references)
    if not options:
        raise ValueError("VQA accuracy needs at least one reference")
    found = process(prediction)
    processed = {text: process(text) for text in set(options)}
    given = [processed[text] for text in options]
    same = Counter(given)[found]
    return sum(min(1.0, (same - (text == found)) / 3) for text in given) / len(given)


def docext_similarity(prediction: str, reference: str) -> float:
    """Return docext's similarity of a field: 1 − distance / longer length, without stripping or case folding.

    Range 0..1, higher is better. Two empty texts: 1.0, so a missing answer is right if nothing was to be found. The
    same as `normalized_edit_similarity`. Source: docs/benchmarks/nanonets_kie.md.

    >>> docext_similarity("2024-01-31", "2024-01-30")
    0.9
    """
    return normalized_edit_similarity(prediction, reference)


def max_normalized_similarity(prediction: str, reference: str) -> float:
    """Return the similarity of a field in the variant `strict_json`: `docext_similarity` of the stripped texts.

    Range 0..1, higher is better. Emptiness is tested before stripping, as there: " " against "" is 0.0, " " against " "
    is 1.0. Source: docs/benchmarks/nanonets_kie.md.

    >>> max_normalized_similarity(" 2024-01-31", "2024-01-30")
    0.9
    """
    check_texts(prediction=prediction, reference=reference)
    if not prediction or not reference:
        return float(prediction == reference)
    return normalized_edit_similarity(prediction.strip(), reference.strip())


def vlmevalkit_distance(prediction: str, reference: str) -> float:
    """Return the normalised distance of VLMEvalKit's `anls_compute`.

    Range 0..1, lower is better. Two empty texts: 0.0. The texts are lower-cased and their white space collapsed, but
    the distance is divided by the length of the longer *raw* text after upper-casing (so "ß" counts 2), as in the
    official programs. Letters whose lower case is longer (U+0130) can therefore bring it above 1. Source:
    docs/protocols/qa.md.

    >>> vlmevalkit_distance("hello wurld", "Hello World")
    0.09090909090909091
    """
    check_texts(prediction=prediction, reference=reference)
    longest = max(len(prediction.upper()), len(reference.upper()))
    distance = levenshtein_distance(_folded(prediction), _folded(reference))
    return distance / longest if longest else 0.0


def vlmevalkit_similarity(prediction: str, reference: str) -> float:
    """Return 1 − `vlmevalkit_distance`: ANLS of one reference without its threshold. Higher is better.

    >>> vlmevalkit_similarity("hello wurld", "Hello World")
    0.9090909090909091
    """
    return 1.0 - vlmevalkit_distance(prediction, reference)


def anls(prediction: str, references: str | Sequence[str], *, threshold: float = 0.5) -> float:
    """Return classic ANLS: the best similarity to one of the references, 0.0 if it is below the threshold.

    Range 0..1, higher is better, case and runs of white space ignored. Exactly the threshold counts. Two empty texts:
    1.0. Source: DocVQA as in lmms-eval, docs/protocols/qa.md. Raises ValueError if there is no reference.

    >>> anls("hello wurld", ["Hello World", "goodbye"])
    0.9090909090909091
    """
    options = accepted_references(prediction, references)
    if not options:
        raise ValueError("ANLS needs at least one reference")
    similarity = 1.0 - min(vlmevalkit_distance(prediction, reference) for reference in options)
    return similarity if similarity >= threshold else 0.0


def _folded(text: str) -> str:
    return " ".join(text.lower().split())
