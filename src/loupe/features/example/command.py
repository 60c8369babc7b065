"""`loupe example`: the worked example of docs/own-documents.md: pages, their ground truth, and made-up models."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from loupe.cli.shared.lazy import SuggestingGroup
from loupe.cli.shared.output import as_json, json_option, print_line, say
from loupe.data import trust
from loupe.errors import UnsafeFileError, UsageError, word
from loupe.files.foreign import open_data

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
    """Write thirty invoices and thirty other papers into DIR/papers.

    PDF files and scans in five languages, without ground truth. Also writes extract.py, a
    rule-based engine, and loupe.toml with its two profiles. DIR must not hold any of these yet.
    """
    from loupe.features.example.made_up_models import documents
    from loupe.files.folder import Folder, is_unfinished, write_all_or_none

    files = {"extract.py": (Path(__file__).parent / "extract.py").read_text("utf-8"), "loupe.toml": ENGINES}
    there = [name for name in (*files, "papers") if _holds_something(folder / name)]
    papers = documents()
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
    """True if a file is there, or a folder with a file; empty folders are what a full disk left."""
    return path.exists() and (not path.is_dir() or any(each.is_file() for each in path.rglob("*")))


def _is_same(file: Path, papers: dict[str, bytes]) -> bool:
    """Return whether a file is the example's document of its name."""
    try:
        with open_data(file) as opened:
            return opened.read(10**6) == papers.get(file.name)
    except (OSError, UnsafeFileError):
        return False


@command.command("truth")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@json_option
def truth(folder: Path, json: bool) -> None:
    """Write the ground truth of the example's invoices to DIR/samples.jsonl.

    It replaces the person who checks drafts with `loupe review`, and marks each line as verified. Only fields that
    DIR/loupe.toml lists are written; lines that are already verified stay. Documents that share a name with the
    example's but differ are refused.
    """
    from loupe.benchmarks.folders.own.config import SAMPLES, read_config
    from loupe.benchmarks.folders.own.rows import file_name, paths_of, read_rows
    from loupe.benchmarks.folders.own.survey import missing_samples
    from loupe.features.example.made_up_models import documents, facts
    from loupe.web.review.drafts import verify

    config, problems = read_config(folder)
    if config is None:
        raise problems[0].error()
    if not (folder / SAMPLES).is_file():
        raise missing_samples(folder).error()
    papers = {Path(name).name: data for name, data in documents().items()}
    truths = {name: fact["truth"] for name, fact in facts().items() if fact["truth"]}
    known = {}
    for row in read_rows(folder / SAMPLES, config):
        if row.wrong or row.ident not in truths:
            continue
        if not all(_is_same(folder / file_name(page), papers) for page in paths_of(row.values) or ("",)):
            raise UsageError(
                f"{folder}: {row.ident} is not the document of this name in the example; nothing was changed",
                hint=f"to review your own documents: loupe review {word(folder)}; the example: loupe example pages NEW",
            )
        known[row.ident] = {name: truths[row.ident][name] for name in config.fields if name in truths[row.ident]}
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    verified, accepted = verify(folder, config, known, by="loupe example", at=at)
    if not verified:
        raise UsageError(f"{folder}: no draft of an invoice of this example", hint="run: loupe example pages DIR")
    if json:
        as_json({"folder": str(folder), "verified": verified, "right_as_drafted": accepted})
        return
    print_line(f"{verified} samples verified; {accepted} drafts were right without edits")


@command.command("models")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port to listen on. Default: any free port."
)
def models(port: int) -> None:
    """Serve two made-up models for `loupe select`.

    They look each paper up in a table, by its image or its words, and read nothing else: `example/careful` is wrong
    on one question of thirty, `example/hasty` on one of five. They listen on this machine only. Ctrl-C ends them.
    """
    from loupe.features.example.made_up_models import serve_models

    serve_models(port, ready=lambda address: print_line(f"{address}  {' '.join(MODELS)}"))
