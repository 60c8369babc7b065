"""Pages of the user's own design: made-up data in their template, and what it says stands there."""

from __future__ import annotations

from pathlib import Path

from loupe.features.synth.dice import Dice
from loupe.features.synth.page import Field, Page, Truth
from loupe.features.synth.text.language import language
from loupe.features.synth.typeset.templates import made_up_data, said_of, template_digest


def template_page(path: Path, seed: int, number: int, code: str) -> Page:
    """Page `number` of a template; its text is what the template says, else that of its text layer."""
    data = made_up_data(code, Dice(seed, "template", number), number)
    said = said_of(str(path), data)
    recipe = {"template": str(path), "data": data, "digest": template_digest(path)}
    return Page(
        track="template",
        base=f"template-{number:04}",
        rung="page",
        rank=0,
        language=code,
        layout={},
        truth=Truth(
            text=said.text,
            fields=tuple(Field(name=name, value=value) for name, value in said.fields.items()),
            glue=language(code).glue,
            recipe=recipe,
        ),
    )
