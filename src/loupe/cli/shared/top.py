"""The top of the command: what there is, in one screen, without importing any of it."""

from __future__ import annotations

import click

from loupe import __version__
from loupe.cli.shared.errors import EXIT_CODES
from loupe.cli.shared.lazy import LazyGroup
from loupe.cli.shared.output import print_data, say

SECTIONS = {
    "Measure": {
        "run": "Read the pages of benchmarks with engines, and score the answers.",
        "infer": "Read the pages only; `loupe score` does the rest, anywhere.",
        "score": "Score the predictions of runs again, without an engine.",
        "verify": "Score the parity cases that come with Loupe, and compare with what the official evaluators "
        "returned.",
        "demo": "Read the sample pages with the local engines, and write a report.",
    },
    "Look": {
        "runs": "List the runs here with their headline measure.",
        "compare": "Put runs of one benchmark side by side, with paired differences.",
        "reproduce": "Compare published figures with measured ones, and list settings that differ or are unknown.",
        "view": "View runs in a browser on this machine, even while they run.",
        "report": "Write one HTML file with every number, page and answer of some runs.",
        "review": "Review ground truth beside the page in a browser: accept, edit, skip.",
        "export": "Write runs as files for other programs: answers, tables, logs, results.",
        "pack": "Write a run as one archive, from which anybody can score it again.",
        "unpack": "Turn an archive that `loupe pack` wrote back into a run.",
    },
    "Your documents": {
        "init": "Turn a folder of images and PDF files into a benchmark.",
        "draft": "Draft ground truth for a folder of documents with engines, to be checked with `loupe review`.",
    },
    "Data": {
        "data": "Fetch, check and pack the data of benchmarks, also for machines without network.",
        "setup": "Get the data of all benchmarks, as `loupe data get` does; or, with `math`, KaTeX for math tests.",
    },
    "Engines and tools": {
        "bench": "List, show and check benchmarks and folders of your own.",
        "engine": "List, show, install and try engines.",
        "trust": "Show what a loupe.toml or Python file would run or redefine, and trust it.",
        "doctor": "Check what is installed, which servers answer, and how to get the rest.",
    },
}

EPILOG = """\b
Start here:
  loupe demo                                 the local engines on the first 12 samples
  loupe run ./mydocs -e rapidocr             your own pages
  loupe run sample_pages --base-url http://127.0.0.1:8000/v1

\b
Exit codes:
""" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXIT_CODES.items())


@click.group(
    cls=LazyGroup,
    sections=SECTIONS,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.version_option(__version__, "-V", "--version", message="loupe %(version)s")
@click.pass_context
def root(context: click.Context) -> None:
    """Measure how well machines read documents: any engine, exact scores, error bars."""
    if context.invoked_subcommand is None:
        print_data(context.get_help())
        return
    from loupe.data.user_folders import unreadable
    from loupe.workers.limits import max_pixels

    max_pixels()  # a wrong limit is said here, once, and not by every process that reads pages
    if closed := unreadable():
        say(f"warning: {closed}")
