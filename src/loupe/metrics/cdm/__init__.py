"""CDM: Character Detection Matching, how many characters of a formula are drawn where they should be.

Paper: Wang et al., "Image Over Text: Transforming Formula Recognition Evaluation with Character Detection Matching"
(CVPR 2025). Protocol: docs/protocols/cdm.md. Text is tokenised, normalised and coloured (`colour`), then rendered, and
the boxes of the tokens are matched (`match`), all by one of the `PROFILES`.
"""

from loupe.metrics.cdm.braces import NotColouredError
from loupe.metrics.cdm.colouring import ColouredFormula, colour
from loupe.metrics.cdm.matching import match
from loupe.metrics.cdm.profiles import PROFILES, CdmProfile
from loupe.metrics.cdm.scoring import CdmScore

__all__ = ["PROFILES", "CdmProfile", "CdmScore", "ColouredFormula", "NotColouredError", "colour", "match"]
