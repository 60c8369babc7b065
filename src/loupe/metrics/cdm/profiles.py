"""The versions of CDM in use, as switches. They give different scores, so the profile is part of every result.

Protocol page cdm.md. `omnidocbench`: pichiu/OmniDocBench @ 7bd6c2eb; `unimernet`: opendatalab/UniMERNet @ 5a2c80d9;
`request`: the first with the patches that make it run on older systems, which touch rendering only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class CdmProfile:
    """What differs between the versions."""

    name: str
    # Text (sections A0, B, C)
    wraps_chinese: bool  # Chinese goes into \text, and has a template of its own
    table_template: bool  # tables have a template of their own
    glues_not: bool  # `\not =` is one token
    splits_by_token: bool  # names such as \dots are taken apart wherever they stand, and there are more of them
    glues_string_and_rule: bool  # `\string x` and `\rule {..} {..}` are one token
    more_skipped: frozenset[str]
    more_phantoms: frozenset[str]
    more_accents: frozenset[str]
    # Matching (sections F, G)
    newer_token_map: bool  # which tokens count as the same
    similar_token_cost: float
    shared_order_length: bool  # order is measured in the longer list, not in each one's own
    ransac_rounds: int
    ransac_samples: int
    ransac_threshold: float
    # Scores (section H)
    drops_unrenderable_reference: bool


OMNIDOCBENCH: Final = CdmProfile(
    name="omnidocbench",
    wraps_chinese=False,
    table_template=False,
    glues_not=True,
    splits_by_token=False,
    glues_string_and_rule=False,
    more_skipped=frozenset(),
    more_phantoms=frozenset(),
    more_accents=frozenset(),
    newer_token_map=False,
    similar_token_cost=0.05,
    shared_order_length=False,
    ransac_rounds=3,
    ransac_samples=3,
    ransac_threshold=25.0,
    drops_unrenderable_reference=False,
)
UNIMERNET: Final = CdmProfile(
    name="unimernet",
    wraps_chinese=True,
    table_template=True,
    glues_not=False,
    splits_by_token=True,
    glues_string_and_rule=True,
    more_skipped=frozenset(["\\edef", "\\gdef", "\\today", "\\the"]),
    more_phantoms=frozenset(["\\thesubequation", "\\global", "\\theboldgroup"]),
    more_accents=frozenset(["\\Ddot", "\\dddot", "\\ddddot"]),
    newer_token_map=True,
    similar_token_cost=0.005,
    shared_order_length=True,
    ransac_rounds=5,
    ransac_samples=2,
    ransac_threshold=20.0,
    drops_unrenderable_reference=True,
)
REQUEST: Final = replace(OMNIDOCBENCH, name="request")

PROFILES: Final = {profile.name: profile for profile in (OMNIDOCBENCH, UNIMERNET, REQUEST)}
