"""The questions that upstream's runners ask, to the letter, by name (docs/protocols/olmocr_bench.md#prompts).

The anchored ones, `full` and `finetune`, hold `{anchor_text}`, where each page's own text and its positions are put
when it is asked for (`loupe.engines.pages.anchor_text`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

PromptName: TypeAlias = Literal[
    "basic",
    "full",
    "full_no_document_anchoring",
    "finetune",
    "fullv3simple",
    "rolmocr",
    "yaml",
    "finetune_v4_yaml",
    "nanonets",
]

_NATURAL = "Just return the plain text representation of this document as if you were reading it naturally."
_END = (
    "This is likely one page out of several in the document, so be sure to preserve any sentences that come from the "
    "previous page, or continue onto the next page, exactly as they are.\n"
    "If there is no text at all that you think you should read, you can output null.\n"
    "Do not hallucinate."
)
_KEEP = "Remove the headers and footers, but keep references and footnotes.\nRead any natural handwriting.\n"
_FIGURES = (
    "If there are any figures or charts, label them with the following markdown syntax "
    "![Alt text describing the contents of the figure](page_startx_starty_width_height.png)"
)
_FRONT_MATTER = (
    "Return your output as markdown, with a front matter section on top specifying values for the primary_language, "
    "is_rotation_valid, rotation_correction, is_table, and is_diagram parameters."
)
_ATTACHED = f"Attached is one page of a document that you must process. {_NATURAL} "

BASIC = (
    "Please provide a natural, plain text representation of the document, formatted in Markdown. Skip any headers and "
    r"footers. For ALL mathematical expressions, use LaTeX notation with \( and \) for inline equations and \[ and \] "
    "for display equations. Convert any tables into Markdown format."
)

#: Blanks and line breaks that are missing after sentences are missing upstream.
_FULL_V3_SIMPLE = (
    f"Attached is the image of one page of a PDF document.{_NATURAL}\n"
    r"Turn equations and math symbols into a LaTeX representation, make sure to use \( and \) as a delimiter for "
    r"inline math, and \[ and \] for block math. Do NOT use ascii or unicode math symbols such as ∈ ∉ ⊂ ⊃ ⊆ ⊇ ∅ ∪ ∩ ∀ "
    r"∃ ¬, just use LaTeX syntax, ex  \( \in \) \( \notin \) etc. If you were going to surround a math expression in $ "
    r"symbols, surround it with \( \) instead."
    "\nConvert tables into HTML format. Keep the syntax simple, but use <th> for header rows, and use rowspan and "
    "colspans appropriately. Don't use <br> inside of table cells, just split that into new rows as needed. Do NOT use "
    "LaTeX or Markdown table syntax.\n"
    f"{_KEEP}{_FIGURES}{_END}\n"
    "Page width: {width}, Page height: {height}"
)

_RAW_TEXT = "RAW_TEXT_START\n{anchor_text}\nRAW_TEXT_END"
_EXTRACTED = "as well as some raw textual content that was previously extracted for it"
_FULL = f"Turn equations into a LaTeX representation, and tables into markdown format. {_KEEP}{_END}"

_PROMPTS: dict[PromptName, str] = {
    "basic": BASIC,
    "full": (
        f"Below is the image of one page of a PDF document, {_EXTRACTED} that includes position information for each "
        "image and block of text (The origin [0x0] of the coordinates is in the lower left corner of the image). "
        f"{_NATURAL}\n{_FULL}\n{_RAW_TEXT}"
    ),
    "full_no_document_anchoring": f"Below is the image of one page of a PDF document. {_NATURAL}\n{_FULL}",
    "finetune": (
        f"Below is the image of one page of a document, {_EXTRACTED}. {_NATURAL}\nDo not hallucinate.\n{_RAW_TEXT}"
    ),
    "fullv3simple": _FULL_V3_SIMPLE,
    "rolmocr": "Return the plain text representation of this document as if you were reading it naturally.\n",
    "yaml": f"{_ATTACHED}Convert equations to LateX and tables to markdown.\n{_FRONT_MATTER}",
    "finetune_v4_yaml": f"{_ATTACHED}Convert equations to LateX and tables to HTML.\n{_FIGURES}\n{_FRONT_MATTER}",
    "nanonets": (
        "Extract the text from the above document as if you were reading it naturally. Return the tables in html "
        "format. Return the equations in LaTeX representation. If there is an image in the document and image caption "
        "is not present, add a small description of the image inside the <img></img> tag; otherwise, add the image "
        "caption inside <img></img>. Watermarks should be wrapped in brackets. Ex: <watermark>OFFICIAL "
        "COPY</watermark>. Page numbers should be wrapped in brackets. Ex: <page_number>14</page_number> or "
        "<page_number>9/22</page_number>. Prefer using ☐ and ☑ for check boxes."
    ),
}


def names_size(name: PromptName) -> bool:
    """Whether a prompt says how large the page image is."""
    return "{width}" in _PROMPTS[name]


def prompt_for(name: PromptName, *, width: int = 0, height: int = 0) -> str:
    """The prompt; the size of the page image in pixels only for those that name it."""
    return _PROMPTS[name].replace("{width}", str(width)).replace("{height}", str(height))
