"""`loupe demo`: the whole line in half a minute, on pages that come with the package and engines that need no server.

Two that can read are compared: RapidOCR and Tesseract; where only one is here, that one on pages as they are and small.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import click

from loupe.cli.shared.errors import INTERRUPTED, show_error
from loupe.cli.shared.output import as_json, json_option, plain_option, print_line, runs_option, say, tables
from loupe.data.extras import install_command, install_hint
from loupe.errors import LoupeError, MissingToolError, RunError, WriteError
from loupe.files.default_places import default_place
from loupe.files.folder import Folder

if TYPE_CHECKING:
    from loupe.runs.folder import RunFolder

BENCHMARK = "sample_pages"
#: The first samples are the pages to transcribe; the others put questions that engines without a language model cannot
#: understand.
PAGES = 12
#: Longer side in pixels at which lines of small print begin to be lost: 400 costs nothing yet.
SMALL = 300
ENGINES = ("rapidocr", "tesseract")


@click.command("demo")
@runs_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=default_place("report.html"),
    metavar="FILE",
    help="The report.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=PAGES,
    show_default=True,
    metavar="N",
    help="Only the first N samples.",
)
@json_option
@plain_option
@click.pass_context
def command(context: click.Context, /, runs: Path, output: Path, limit: int, json: bool, plain: bool) -> None:
    """Read the sample pages with the local engines, and write a report.

    RapidOCR and Tesseract read them. If only one is installed, it also reads them reduced to 300 pixels, and the table
    shows what that costs, with its interval and the time taken. Nothing is downloaded.
    """
    from loupe.cli.compare import sections
    from loupe.report.html import write_report
    from loupe.results.comparing.runs import compare_runs

    Folder(runs).refuse_if_linked()  # Once, not for each engine.
    folders, interrupted = read_pages(runs, limit, plain=plain)
    if interrupted:
        context.exit(INTERRUPTED)
    if not folders:
        raise MissingToolError("no local engine could read the pages", hint=install_hint("rapidocr"))
    paths = tuple(folder.path for folder in folders)
    compared = compare_runs(paths) if len(paths) > 1 else None
    write_report(paths, output)
    if json:
        as_json({"runs": [str(path) for path in paths], "report": str(output), "comparison": compared})
        return
    if compared:
        tables(sections(compared), plain=plain)
    print_line(f"report: {output.absolute()}")
    engine = _engine_of(folders[0])
    say(f"your own pages: loupe run ./mydocs -e {engine}   any server: loupe run {BENCHMARK} --base-url URL")


def read_pages(runs: Path, limit: int, *, plain: bool) -> tuple[list[RunFolder], bool]:
    """Run every engine that is here, with one line on what happened to each; and whether Ctrl-C ended it.

    One alone is run twice: there is always something to compare.
    """
    folders: list[RunFolder] = []
    for engine in ENGINES:
        missing = what_is_missing(engine)
        if missing:
            say(f"{engine}: skipped, {missing}")
        elif read(engine, {}, folders, runs=runs, limit=limit, plain=plain):
            return folders, True
    if len(folders) == 1:
        engine = _engine_of(folders[0])
        return folders, read(engine, {"longest": SMALL}, folders, runs=runs, limit=limit, plain=plain)
    return folders, False


def read(
    engine: str, settings: dict[str, Any], folders: list[RunFolder], *, runs: Path, limit: int, plain: bool
) -> bool:
    """Let one engine read, and add its run; whether Ctrl-C ended it. An engine that fails does not stop the next."""
    from loupe.cli.shared.reading import read_one
    from loupe.engines.registry import load_profile
    from loupe.pipeline import Plan, run
    from loupe.results.headline import format_headline
    from loupe.results.scored_here import result_of

    label, profile = load_profile(engine, settings)
    usual = f"{label}-{SMALL}px" if settings else label
    own = f"{usual}-demo-{limit}"
    name = usual if _is_free(runs / usual / BENCHMARK, limit) else own
    plan = Plan(benchmark=BENCHMARK, label=label, profile=profile, name=name, runs=runs, limit=limit)
    try:
        try:
            folder, code = read_one(plan, run, plain=plain)
        except RunError:  # the usual place holds a run with other settings
            if name == own:
                raise
            name = own
            folder, code = read_one(replace(plan, name=own), run, plain=plain)
    except WriteError:
        raise  # The next engine could not write either.
    except LoupeError as error:
        show_error(f"{name}: {error.message}", error.hint)
        return False
    if code == INTERRUPTED:
        return True
    result = result_of(folder)
    folders.append(folder)
    say(f"{name}: {format_headline(result) if result else 'not scored'}, in {folder.path}")
    return False


def _engine_of(folder: RunFolder) -> str:
    """The engine of a run that the demo may have named otherwise."""
    return next(engine for engine in ENGINES if folder.info.engine.startswith(engine))


def _is_free(path: Path, limit: int) -> bool:
    """True if the demo can make or continue its run here: a run of other samples of the user's own stays as it is."""
    from loupe.runs.folder import RunFolder

    try:
        info = RunFolder.open(path).info
    except RunError:
        return not path.exists()
    return info.limit == limit and info.sample is None


def what_is_missing(name: str) -> str:
    """Say what this engine needs and what brings it; empty if it is all here."""
    if name == "rapidocr" and not (find_spec("rapidocr") and find_spec("onnxruntime")):
        return f"it comes with: {install_command('rapidocr')}"
    if name == "tesseract" and which("tesseract") is None:
        return "it comes with: apt-get install tesseract-ocr, or brew install tesseract"
    return ""
