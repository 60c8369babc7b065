"""`loupe synth`: pages that nobody has published, as a folder of one's own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from loupe.cli.shared.output import as_json, json_option, print_line, say
from loupe.errors import word


@click.command("synth")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(min=0), default=1, metavar="S", help="Seed of all chance. Default: 1.")
@click.option("--tracks", default="all", metavar="A,B", help="Tracks (docs/synth.md). Default: all.")
@click.option("--pages", type=int, default=250, metavar="N", help="Pages; ladders are whole. Default: 250.")
@click.option("--languages", default="", metavar="A,B", help="Languages of the text, as en,de,zh. Default: English.")
@click.option("--text", default="", metavar="DIR", help="Folder of your own texts (.txt, .md) instead of made-up ones.")
@click.option("--template", default="", metavar="FILE", help="Your own page design for typst instead of the tracks.")
@json_option
def command(
    folder: Path, seed: int, tracks: str, pages: int, languages: str, text: str, template: str, json: bool
) -> None:
    """Generate pages with exact truth as a folder that `loupe run DIR` reads.

    Writes the pages, the clean PDF files, samples.jsonl, facts.jsonl and loupe.toml. The same seed gives the same
    pages on every machine with the same typesetter and fonts. `loupe run synth` reads such pages without a folder.
    """
    from loupe.features.synth.choosing import choice_of
    from loupe.features.synth.own_folder import write_generated

    choice = choice_of(tracks, seed, pages, languages, "picture", text, template)
    count = asyncio.run(write_generated(folder, choice, say))
    if json:
        as_json({"folder": str(folder), "samples": count, "seed": seed})
        return
    print_line(f"{folder}: {count:,} pages, seed {seed}")
    say(f"read them: loupe run {word(folder)} -e rapidocr")
