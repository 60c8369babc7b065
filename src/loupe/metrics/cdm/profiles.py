"""The versions of CDM in use, as switches. They give different scores, so the profile is part of every result.

Protocol: docs/protocols/cdm.md and docs/protocols/omnidocbench_v16.md#cdm.
- `omnidocbench`: pichiu/OmniDocBench @ 7bd6c2eb; `unimernet`: opendatalab/UniMERNet @ 5a2c80d9
- `omnidocbench_pdflatex`: the first with the patches that make it run on older systems; they touch rendering only
- `omnidocbench_v16`: OmniDocBench 1.6, dangvu53/OmniDocBench @ 9c594aa3; it reads and draws formulas its own way
- `mdpbench`: MDPBench, Yuliang-Liu/MultimodalOCR @ 794c36d6; it colours them in another way
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

Program: TypeAlias = Literal["pdflatex", "xelatex"]

#: Packages of the official templates, in their order, which matters.
PLAIN: Final = ("booktabs", "amsmath", "upgreek", "amssymb", "xcolor")
TABLE: Final = ("booktabs", "multirow", "amssymb", "upgreek", "amsmath", "xcolor")
CHINESE: Final = ("booktabs", "amsmath", "upgreek", "CJK", "amssymb", "xcolor")
UNICODE: Final = ("amsmath", "upgreek", "amssymb", "xcolor", "xeCJK")


@dataclass(frozen=True, slots=True, kw_only=True)
class CdmProfile:
    """The switches that differ between the versions."""

    name: str
    # Text (docs/protocols/cdm.md#chinese, #tokeniser, #normaliser, #colouring)
    wraps_chinese: bool  # Chinese goes into \text, and has a template of its own
    table_template: bool  # tables have a template of their own
    reads_as_pylatexenc: bool  # the tokenizer is built on pylatexenc 2.10, not on KaTeX; Chinese text keeps its blanks
    glues_not: bool  # `\not =` is one token
    splits_by_token: bool  # names such as \dots are taken apart wherever they stand, and there are more of them
    glues_string_and_rule: bool  # `\string x` and `\rule {..} {..}` are one token
    more_skipped: frozenset[str]
    more_phantoms: frozenset[str]
    more_accents: frozenset[str]
    colour_command: str  # what stands before `[RGB]{..}{token}`
    # Drawing (docs/protocols/cdm.md#rendering, #boxes)
    program: Program
    packages: tuple[str, ...]  # of what is neither Chinese nor a table
    enlarges_paper: bool  # what does not fit its paper is set again on the next larger one
    joins_pages: bool  # several pages are put below each other; else they are a failure
    crops_within_page: bool
    rounds_colours: bool  # a colour near one of the palette is taken for it
    # Matching (docs/protocols/cdm.md#assignment, #ransac)
    newer_token_map: bool  # which tokens count as the same
    similar_token_cost: float
    shared_order_length: bool  # order is measured in the longer list, not in each one's own
    ransac_rounds: int
    ransac_samples: int
    ransac_threshold: float
    ransac_tries_all: bool  # all of its trials, of which it has more, and no scikit-image
    # Scores (docs/protocols/cdm.md#scores)
    drops_unrenderable_reference: bool


OMNIDOCBENCH: Final = CdmProfile(
    name="omnidocbench",
    wraps_chinese=False,
    table_template=False,
    reads_as_pylatexenc=False,
    glues_not=True,
    splits_by_token=False,
    glues_string_and_rule=False,
    more_skipped=frozenset(),
    more_phantoms=frozenset(),
    more_accents=frozenset(),
    colour_command="\\mathcolor",
    program="xelatex",
    packages=UNICODE,
    enlarges_paper=False,
    joins_pages=False,
    crops_within_page=False,
    rounds_colours=False,
    newer_token_map=False,
    similar_token_cost=0.05,
    shared_order_length=False,
    ransac_rounds=3,
    ransac_samples=3,
    ransac_threshold=25.0,
    ransac_tries_all=False,
    drops_unrenderable_reference=False,
)
UNIMERNET: Final = CdmProfile(
    name="unimernet",
    wraps_chinese=True,
    table_template=True,
    reads_as_pylatexenc=False,
    glues_not=False,
    splits_by_token=True,
    glues_string_and_rule=True,
    more_skipped=frozenset(["\\edef", "\\gdef", "\\today", "\\the"]),
    more_phantoms=frozenset(["\\thesubequation", "\\global", "\\theboldgroup"]),
    more_accents=frozenset(["\\Ddot", "\\dddot", "\\ddddot"]),
    colour_command="\\mathcolor",
    program="pdflatex",
    packages=PLAIN,
    enlarges_paper=False,
    joins_pages=False,
    crops_within_page=False,
    rounds_colours=False,
    newer_token_map=True,
    similar_token_cost=0.005,
    shared_order_length=True,
    ransac_rounds=5,
    ransac_samples=2,
    ransac_threshold=20.0,
    ransac_tries_all=False,
    drops_unrenderable_reference=True,
)
OMNIDOCBENCH_PDFLATEX: Final = replace(OMNIDOCBENCH, name="omnidocbench_pdflatex", program="pdflatex", packages=TABLE)
OMNIDOCBENCH_V16: Final = replace(
    UNIMERNET,
    name="omnidocbench_v16",
    reads_as_pylatexenc=True,
    enlarges_paper=True,
    joins_pages=True,
    crops_within_page=True,
    rounds_colours=True,
    ransac_threshold=30.0,
    ransac_tries_all=True,
    drops_unrenderable_reference=False,
)
MDPBENCH: Final = replace(OMNIDOCBENCH, name="mdpbench", colour_command="\\color")

PROFILES: Final = {
    profile.name: profile for profile in (OMNIDOCBENCH, UNIMERNET, OMNIDOCBENCH_PDFLATEX, OMNIDOCBENCH_V16, MDPBENCH)
}
