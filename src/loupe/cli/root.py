"""The top of the command: what there is, in one screen, without importing any of it."""

from __future__ import annotations

import click

from loupe import __version__
from loupe.cli.lazy import LazyGroup
from loupe.cli.output import print_data

SECTIONS = {
    "Measure": {
        "run": "Read the pages of a benchmark with an engine, and score the answers.",
        "infer": "Read the pages only; `loupe score` does the rest, anywhere.",
        "score": "Score the predictions of a run again; no engine is needed.",
        "verify": "Score the parity cases that come with Loupe, and compare with what the official evaluators "
        "returned.",
        "demo": "Read the sample pages with the local engines, and show all there is to see.",
    },
    "Look": {
        "runs": "List the runs here with their headline measure.",
        "compare": "Put runs of one benchmark side by side, with paired differences.",
        "reproduce": "Put published figures beside measured ones, with the settings that differ or are unknown.",
        "view": "Look at runs in a browser on this machine, also while they are running.",
        "report": "Write one HTML file with every number, page and answer of some runs.",
        "lint": "Find faults of form that cost points, page by page, and say what answers would score without them.",
        "review": "Go through ground truth beside the page, in a browser: accept, edit, skip.",
        "export": "Write the answers of a run as files, for the official evaluators.",
    },
    "Your documents": {
        "init": "Make a folder of images and PDF files a benchmark.",
        "draft": "Let engines write draft truth for the documents of a folder, to be checked with `loupe review`.",
        "example": "Make the documents of the worked example, and their truth (docs/own-documents.md).",
        "select": "Rank vision models and text models on documents of one type.",
    },
    "Data": {
        "data": "Bring the data of benchmarks here, check it, and carry it to machines without network.",
        "setup": "Get the data of all benchmarks, as `loupe data get` does; or, with `math`, KaTeX for math tests.",
    },
    "Parts": {
        "bench": "List, show and check benchmarks and folders of your own.",
        "engine": "List, show and try engines.",
        "load": "Measure throughput and latency of an engine by requests in flight.",
        "serve": "Offer an engine as an OpenAI-compatible server on this machine.",
        "compress": "Count what pages cost in vision tokens, and measure how much of them is read at that compression.",
        "embed": "Embed page texts, figures with their captions, and queries; score what is found.",
        "size": "Plan server and client for a GPU: what fits, how much at once, and the command line.",
        "trust": "Show what a folder's loupe.toml, or a Python file, would run or redefine, and allow it.",
        "doctor": "Say what is installed, what answers, and what would bring the rest.",
    },
}

EPILOG = """\b
Start here:
  loupe demo                                 the local engines on the first 12 samples
  loupe run ./mydocs -e rapidocr             your own pages
  loupe run sample_pages --base-url http://127.0.0.1:8000/v1

Exit codes: 0 done; 1 below --fail-under; 2 wrong usage; 3 every sample failed (--strict: some did);
4 something needed is missing; 5 could not write; 130 interrupted, state kept
(143 by SIGTERM, 129 by SIGHUP)."""


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
