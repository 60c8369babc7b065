"""`loupe example`: the worked example of docs/own-documents.md, made anew: pages, their truth, and models by table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from loupe.cli.shared.lazy import SuggestingGroup
from loupe.cli.shared.output import as_json, json_option, print_line, say
from loupe.data import trust
from loupe.errors import UsageError, word

MODELS = ("example/careful", "example/hasty")

ENGINES = """\
# Engines of this example: OCR programs, and the rules of extract.py on what they read.
[engines.rapidocr-rules]
kind = "python"
function = "extract.py:rapidocr"

[engines.tesseract-rules]
kind = "python"
function = "extract.py:tesseract"
"""


@click.group("example", cls=SuggestingGroup)
def command() -> None:
    """Make the documents of the worked example, and their ground truth (docs/own-documents.md)."""


@command.command("pages")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@json_option
def pages(folder: Path, json: bool) -> None:
    """Draw thirty invoices and thirty other papers into DIR/papers.

    PDF files and scans in five languages, always the same ones, without ground truth. Also writes extract.py, a
    rule-based engine, and loupe.toml with its two profiles. DIR must not hold any of these yet.
    """
    from loupe.data.example_documents.papers import draw_papers
    from loupe.files.folder import Folder, is_unfinished, write_all_or_none

    files = {"extract.py": (Path(__file__).parent / "extract.py").read_text("utf-8"), "loupe.toml": ENGINES}
    there = [name for name in (*files, "papers") if _holds_something(folder / name)]
    drawn = draw_papers(folder / "papers" / "invoices", folder / "papers" / "others")
    papers = {str(path.relative_to(folder)): data for path, data in drawn.items()}
    contents = papers | {name: text.encode() for name, text in files.items()}
    if there and not is_unfinished(Folder(folder), contents):
        raise UsageError(f"{folder} has {' and '.join(there)} already; nothing was changed", hint="name a new folder")
    write_all_or_none(Folder(folder), contents)
    trust.remember(folder / "loupe.toml")
    if json:
        as_json({"folder": str(folder / "papers"), "documents": len(papers)})
        return
    print_line(f"{len(papers)} documents in {folder / 'papers'}")
    say(
        f"next: cd {folder} && loupe init papers/invoices --task fields --field date:date --field total:amount "
        "--field company:company --field number:id"
    )


def _holds_something(path: Path) -> bool:
    """Whether a file is there, or a folder with a file; empty folders are what a full disk left."""
    return path.exists() and (not path.is_dir() or any(each.is_file() for each in path.rglob("*")))


@command.command("truth")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@json_option
def truth(folder: Path, json: bool) -> None:
    """Write the ground truth of the example's invoices into DIR/samples.jsonl, marked as verified.

    It stands in for the person who checks drafts with `loupe review`. Only fields that DIR/loupe.toml names are
    written; lines that are already verified stay. Documents that share a name with the example's but differ are
    refused.
    """
    from loupe.benchmarks.folders.own.checking import missing_samples
    from loupe.benchmarks.folders.own.config import SAMPLES, read_config
    from loupe.benchmarks.folders.own.rows import file_name, paths_of, read_rows
    from loupe.data.example_documents.papers import is_drawn, papers
    from loupe.web.review.sample_drafts import verify

    config, problems = read_config(folder)
    if config is None:
        raise problems[0].error()
    if not (folder / SAMPLES).is_file():
        raise missing_samples(folder).error()
    invoices = {paper.name: paper for paper in papers() if paper.is_invoice}
    known = {}
    for row in read_rows(folder / SAMPLES, config):
        paper = None if row.wrong else invoices.get(row.ident)
        if paper is None:
            continue
        if not all(is_drawn(paper, folder / file_name(page)) for page in paths_of(row.values) or ("",)):
            raise UsageError(
                f"{folder}: {paper.name} is not the document of this name in the example; nothing was changed",
                hint=f"to review your own documents: loupe review {word(folder)}; the example: loupe example pages NEW",
            )
        known[paper.name] = {name: paper.truth[name] for name in config.fields if name in paper.truth}
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    verified, accepted = verify(folder, config, known, by="loupe example", at=at)
    if not verified:
        raise UsageError(f"{folder}: no draft of an invoice of this example", hint="loupe example pages DIR")
    if json:
        as_json({"folder": str(folder), "verified": verified, "right_as_drafted": accepted})
        return
    print_line(f"{verified} samples verified; {accepted} drafts were right without edits")


@command.command("models")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: 0, a free one.")
def models(port: int) -> None:
    """Serve two made-up models that know the example's papers, for `loupe select`.

    They look each paper up in a table, by its picture or its words, and read nothing else: `example/careful` is wrong
    on one question of thirty, `example/hasty` on one of five. This machine only; Ctrl-C ends.
    """
    from loupe.cli.example.made_up_models import serve_models

    serve_models(port, ready=lambda address: print_line(f"{address}  {' '.join(MODELS)}"))
