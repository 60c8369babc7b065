"""Page scores of words: BLEU, METEOR, F-measure, precision and recall of words, and edit distance.

Source: ucaslcl/Fox @ 82f720c, `eval_tools/eval_ocr_test.py`; OCRBench v2 scores words the same way. Words of pages with
Chinese come from jieba; METEOR is NLTK's, BLEU has NLTK's numbers. Protocol: docs/benchmarks/fox.md.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Protocol, cast

from loupe.metrics import meteor, normalized_edit_distance, sentence_bleu
from loupe.metrics.bleu_and_meteor import Synonyms

_CHINESE = re.compile("[\u4e00-\u9fa5]")
#: jieba takes time with the square of a run of Chinese characters, so that no run is longer; no page has such a run.
_LONGEST_RUN = re.compile("[\u4e00-\u9fd5]{2000}")


class Segmenter(Protocol):
    """The part of jieba that we use."""

    def lcut(self, sentence: str, /) -> list[str]:
        """The words of a sentence; blanks and punctuation are words, too."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PageScores:
    """The six numbers of one page; None where a needed set of words is empty, and the official mean fails."""

    bleu: float
    meteor: float
    f_measure: float | None
    precision: float | None
    recall: float | None
    edit_distance: float


def score_page(prediction: str, reference: str, *, synonyms: Synonyms | None = None) -> PageScores:
    """The numbers of one page in the natural order of arguments, as VLMEvalKit has them."""
    found, wanted = split_words(prediction, reference)
    # NLTK's precision is undefined without found words, its recall without wanted ones.
    shared = len(set(found) & set(wanted))
    precision = shared / len(set(found)) if found else None
    recall = shared / len(set(wanted)) if wanted else None
    return PageScores(
        bleu=sentence_bleu(found, wanted),
        meteor=meteor(found, wanted, synonyms=synonyms),
        f_measure=_f_measure(precision, recall),
        precision=precision,
        recall=recall,
        edit_distance=normalized_edit_distance(prediction, reference),
    )


def score_page_swapped_like_official(
    prediction: str, reference: str, *, synonyms: Synonyms | None = None
) -> PageScores:
    """As the official program calls it: with the ground truth as prediction and the answer as reference.

    Its main loop hands the two over in the wrong order. BLEU and METEOR are computed the wrong way round, and what it
    calls precision is recall; F-measure and edit distance do not change. Kept for parity.
    """
    return score_page(reference, prediction, synonyms=synonyms)


def split_words(*texts: str) -> tuple[list[str], ...]:
    """Words by white space; if any of the texts holds a Chinese character, words of all of them by jieba."""
    if any(_CHINESE.search(text) for text in texts):
        return tuple(_segment(text) for text in texts)
    return tuple(text.split() for text in texts)


def _segment(text: str) -> list[str]:
    words: list[str] = []
    done = 0
    for run in _LONGEST_RUN.finditer(text):
        words += segmenter().lcut(text[done : run.end()])
        done = run.end()
    return words + segmenter().lcut(text[done:])


@cache
def segmenter() -> Segmenter:
    """jieba with its own dictionary. Raises ImportError where it is not installed.

    The dictionary is read here because jieba would print, and would trust a cache in the folder for temporary files,
    where anybody may have put one.
    """
    with warnings.catch_warnings():
        # Its source has invalid escapes, and it asks for pkg_resources; both only warn.
        warnings.simplefilter("ignore")
        import jieba
        import jieba.finalseg
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return cast(Segmenter, tokenizer)


def _f_measure(precision: float | None, recall: float | None) -> float | None:
    if precision is None or recall is None:
        return None
    return 1.0 / (0.5 / precision + 0.5 / recall) if precision and recall else 0.0
