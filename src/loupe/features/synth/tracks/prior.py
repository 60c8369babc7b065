"""Pages that mean less and less: what an engine reads by guessing words from their neighbours."""

from __future__ import annotations

from loupe.features.synth.page import PIXELS_PER_POINT, Page, Truth
from loupe.features.synth.text.rungs import RUNGS
from loupe.features.synth.text.tokens import like
from loupe.features.synth.tracks.layouts import MARGIN, WIDTH, Column, height_of, running, sheet
from loupe.features.synth.tracks.setting import Setting
from loupe.features.synth.typeset.fonts import face_of

_SIZE = 11.0
_LINES = 22


def pages(setting: Setting) -> list[Page]:
    """One page for each rung, all with line ends at the same places."""
    face = face_of(setting.code)
    column = Column(
        x=MARGIN, y=MARGIN, width=WIDTH - 2 * MARGIN, height=height_of(_LINES, _SIZE) + 1, size=_SIZE, face=face
    )
    paragraphs = column.filled(setting.prose, setting.dice())
    text = [token for lines in paragraphs for line in lines for token in line]
    found = []
    for rank, (rung, change) in enumerate(RUNGS.items()):
        changed = iter(
            like([line for lines in paragraphs for line in lines], change(text, setting.code, setting.dice(rung)))
        )
        rung_text = [[next(changed) for _ in lines] for lines in paragraphs]
        found.append(
            Page(
                track="prior",
                base=setting.base,
                rung=rung,
                rank=rank,
                language=setting.code,
                layout=sheet(
                    column.pieces(rung_text), face, _SIZE, setting.code, height=2 * MARGIN + height_of(_LINES, _SIZE)
                ),
                truth=Truth(text=running(rung_text)),
                x_height=_SIZE * face.x_height * PIXELS_PER_POINT,
                faces=(face.family,),
            )
        )
    return found
