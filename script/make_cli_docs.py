"""Write docs/cli.md from the real `--help` of every command; a test compares the two.

python script/make_cli_docs.py [FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from loupe.cli.shared.errors import EXIT_CODES
from loupe.cli.shared.top import root

#: Help is wrapped at this width, whatever terminal the script runs in.
WIDTH = 100
DOCS = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
INTRODUCTION = """\
# The command line

Made by `python script/make_cli_docs.py` from the real `--help`; a test compares the two.

Results go to standard output, everything else to standard error. `--json` gives one JSON document, `--plain` tables
without colour, tab-separated; `NO_COLOR` is respected. An error is two lines, `error: …` and `hint: …`, and an
exit code.

## Exit codes

| code | meaning |
|---|---|
{codes}

These codes, and the two lines of an error, are the same in all commands. {others} come from any command. 1, 3 and 4
mean, by command:

| commands | 1 | 3 | 4 |
|---|---|---|---|
| `run`, `score` | below `--fail-under` | every sample failed; with `--strict`, any | an engine is missing |
| `infer` | | every sample failed; with `--strict`, any | an engine is missing |
| `compress` | | every page failed; with `--strict`, any | an engine is missing |
| `embed` | | every request of one kind failed; with `--strict`, any | server missing |
| `draft` | | nothing was drafted | an engine is missing |
| `select` | | you quit it | a phase has no model that came to the end |
| `compare` | a regression, with `--fail-on-regression` | | |
| `lint` | formatting faults, with `--fail-on-faults` | | |
| `verify` | a case differs | | cases need something that is missing |
| `size` | the model does not fit | | |
| `load`, `demo`, `engine test` | | | no engine answered |
| `doctor` | | | something required is missing |
| every other command | | | a package or program is missing |

Of several results, the code that says most counts: 1, 2, 3, 4, 5, in this order. Every command that writes files ends
with 5 and a hint if the disk is full or read-only, also if one of its processes, or `uv`, meets it.

## Environment
`LOUPE_BASE_URL`, `OPENAI_BASE_URL`, `VLLM_BASE_URL` or `OLLAMA_HOST` name the server where no
`--base-url` does; `LOUPE_API_KEY` or `OPENAI_API_KEY` hold the key of the first or second, never stored or printed;
`LOUPE_SERVE_API_KEY` is the key that clients of `loupe serve` must send; `LOUPE_DEBUG=1` shows tracebacks.
`LOUPE_DATA` is where data sets lie, `HF_ENDPOINT` a mirror of the hub, `HF_TOKEN` its token, never printed either.
`LOUPE_MAX_MEGAPIXELS` allows pages of more than 200 megapixels ([large images](own-data.md#images-and-documents)).
"""


def pages(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The name and the help of a command, and then of everything below it."""
    context = click.Context(command, info_name=" ".join(path), **command.context_settings)
    context.terminal_width = context.max_content_width = WIDTH
    yield " ".join(path), command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            below.context_settings = {**command.context_settings, **below.context_settings}
            yield from pages(below, (*path, name))


def document() -> str:
    """The whole page."""
    codes = "\n".join(f"| {code} | {meaning.replace('|', chr(92) + '|')} |" for code, meaning in EXIT_CODES.items())
    parts = [INTRODUCTION.format(codes=codes, others="0, 2, 5, 70, 130 and 141")]
    parts += [f"## `{name}`\n```text\n{text}\n```\n" for name, text in pages(root, ("loupe",))]
    return "\n".join(parts)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    target.write_text(document(), encoding="utf-8")
