"""CDM: Character Detection Matching, how many characters of a formula are drawn where they should be.

Paper: Wang et al., "Image Over Text: Transforming Formula Recognition Evaluation with Character Detection Matching"
(CVPR 2025). Protocol: docs/metrics/cdm.md. Text is tokenised, normalised and coloured (`colour`), then rendered, and
the boxes of the tokens are matched (`match`), all by one of the `PROFILES`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from loupe.metrics.cdm.colouring import ColouredFormula as ColouredFormula
    from loupe.metrics.cdm.colouring import colour as colour
    from loupe.metrics.cdm.matching import CdmScore as CdmScore
    from loupe.metrics.cdm.matching import match as match
    from loupe.metrics.cdm.profiles import PROFILES as PROFILES
    from loupe.metrics.cdm.profiles import CdmProfile as CdmProfile
    from loupe.metrics.cdm.tokens import NotColouredError as NotColouredError

#: Where each name comes from. Loaded when asked for: grammar tables and numpy cost what most programs never use.
_PLACES: Final = {
    "NotColouredError": "tokens",
    "ColouredFormula": "colouring",
    "colour": "colouring",
    "match": "matching",
    "PROFILES": "profiles",
    "CdmProfile": "profiles",
    "CdmScore": "matching",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
