"""Remove marks that models write between the texts of a page: Nanonets-OCR and DeepSeek-OCR.

Nanonets-OCR marks page numbers, watermarks, signatures and descriptions of images.
Source: the model card's prompt (nanonets/Nanonets-OCR-s), which asks for them; docs/adapters.md. Page numbers go with
their marks in olmOCR-Bench's runner (allenai/olmocr @ f7cfe4c, olmocr/bench/runners/run_nanonetsocr.py).

DeepSeek-OCR writes boxes and equation numbers, which are removed for its own OmniDocBench figures.
Source: the batch evaluation script of deepseek-ai/DeepSeek-OCR @ e4ac34e1; docs/engines/deepseek-ocr.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: `<img>` without any attribute: that of HTML has some.
_MARK = re.compile(r"</?(?:page_number|watermark|signature|img)>")
_PAGE_NUMBER = re.compile(r"<page_number>\d+</page_number>")


def nanonets_page_numbers(text: str) -> str:
    """The text without page numbers that are marked as such and all digits.

    >>> nanonets_page_numbers("The harbour <page_number>3</page_number><page_number>3/9</page_number>")
    'The harbour <page_number>3/9</page_number>'
    """
    return _PAGE_NUMBER.sub("", text)


def nanonets_tags(text: str) -> str:
    """The text without the marks; what stands between them stays.

    >>> nanonets_tags("<watermark>DRAFT</watermark> The harbour <page_number>3/9</page_number>")
    'DRAFT The harbour 3/9'
    """
    return _MARK.sub("", text)


_REF, _REF_TO_DET, _DET_END = "<|ref|>", "<|/ref|><|det|>", "<|/det|>"
_NUMBER = re.compile(r"\\quad\s*\(")
_BOX = re.compile(r"\[\s*" + r"\s*,\s*".join([r"(-?\d{1,6}(?:\.\d{1,6})?)"] * 4) + r"\s*\]")
#: Characters that the rounds of the script may look at (blocks times characters); no page of 8,192 tokens reaches it.
_MOST_WORK = 100_000_000


def deepseek_grounding(text: str) -> str:
    """Drop equation numbers and every `<|ref|>label<|/ref|><|det|>boxes<|/det|>`, and tidy lines around these."""
    text = "\n".join(map(_without_equation_numbers, text.split("\n")))
    blocks = list(_grounding_blocks(text))
    if len(blocks) * len(text) > _MOST_WORK:
        return _without_blocks_at_once(text)
    for block in blocks:
        text = _one_round(text.replace(block, ""))
    return text


def grounding(text: str) -> Iterator[tuple[str, list[float]]]:
    """Label and box (left, top, right, bottom, each from 0 to 999) of every box in grounding marks, in order."""
    for block in _grounding_blocks(text):
        label, _, boxes = block.rpartition(_REF_TO_DET)
        for found in _BOX.finditer(boxes):
            yield label.rpartition(_REF)[2].strip(), [float(side) for side in found.groups()]


def _one_round(text: str) -> str:
    """Do what the script does after each block: shorten runs of empty lines a little and drop centring tags.

    Kept as it is: a page without any block keeps its empty lines and its `<center>`, and of a long run of empty lines
    the more are left the fewer blocks there are.
    """
    text = text.replace("\n\n\n\n", "\n\n").replace("\n\n\n", "\n\n")
    return text.replace("<center>", "").replace("</center>", "")


def _without_blocks_at_once(text: str) -> str:
    """The same in one pass, for answers that no page needs: as after rounds without end."""
    kept: list[str] = []
    end = 0
    for block in _grounding_blocks(text):
        start = text.index(block, end)
        kept.append(text[end:start])
        end = start + len(block)
    rest = "".join([*kept, text[end:]]).replace("<center>", "").replace("</center>", "")
    return re.sub(r"\n{3,}", "\n\n", rest)


def _grounding_blocks(text: str) -> Iterator[str]:
    """Every block from the first opening mark on; a block may hold further opening marks, as in the script."""
    end = 0
    while True:
        start = text.find(_REF, end)
        boxes = text.find(_REF_TO_DET, start + len(_REF)) if start >= 0 else -1
        close = text.find(_DET_END, boxes + len(_REF_TO_DET)) if boxes >= 0 else -1
        if close < 0:
            return
        end = close + len(_DET_END)
        yield text[start:end]


def _without_equation_numbers(line: str) -> str:
    r"""Every `\[…\]` of a line without its `\quad (…)` and without white space around what is left."""
    kept: list[str] = []
    end = 0
    while True:
        start = line.find("\\[", end)
        close = line.find("\\]", start + 2) if start >= 0 else -1
        if close < 0:
            return "".join([*kept, line[end:]])
        kept += [line[end:start], "\\[", _without_numbers(line[start + 2 : close]).strip(), "\\]"]
        end = close + 2


def _without_numbers(formula: str) -> str:
    kept: list[str] = []
    end = 0
    while True:
        found = _NUMBER.search(formula, end)
        close = formula.find(")", found.end()) if found else -1
        if found is None or close < 0:
            return "".join([*kept, formula[end:]])
        kept.append(formula[end : found.start()])
        end = close + 1
