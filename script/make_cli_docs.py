"""Write docs/cli.md from the real `--help` of every command; a test compares the two.

python script/make_cli_docs.py [FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from loupe.cli.shared.errors import EXIT_CODES
from loupe.cli.shared.lazy import ALL_OPTIONS
from loupe.cli.shared.top import root

#: Help is wrapped at this width, whatever terminal the script runs in.
WIDTH = 100
DOCS = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
INTRODUCTION = """\
# The command line

Every command with its options, and the exit codes, environment variables and files of all of them.

Results go to standard output, everything else to standard error. `--json` gives one JSON document, `--plain` tables
without colour, tab-separated; `NO_COLOR` is respected. An error is two lines, `error: …` and `hint: …`, and an
exit code. `python script/make_cli_docs.py` makes this page from the real `--help`; a test compares the two.

## Exit codes

| commands | code | meaning |
|---|---|---|
{codes}

If several results deserve different codes, 1 comes before 2, then 3, 4 and 5. Every command that writes files ends with
5 and a hint if the disk is full or read-only, also if one of its processes, or `uv`, meets it.

## Environment

| variable | what it sets |
|---|---|
| `LOUPE_BASE_URL`, `OPENAI_BASE_URL`, `VLLM_BASE_URL`, `OLLAMA_HOST` | the server; the first one set counts |
| `LOUPE_API_KEY`, `OPENAI_API_KEY` | the key of the first or second of these, never stored or printed |
| `LOUPE_SERVE_API_KEY` | the key that clients of `loupe serve` must send |
| `LOUPE_DATA` | the folder of datasets |
| `HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_OFFLINE` | a mirror of the hub, its token (never printed), and a ban on asking it |
| `LOUPE_KATEX_DIR` | a folder with KaTeX, for machines without network ([data](data.md)) |
| `LOUPE_MAX_MEGAPIXELS` | the largest page, in megapixels ([large images](own-data.md#images-and-documents)) |
| `LOUPE_DEBUG=1` | tracebacks with errors |
| `NO_COLOR` | output without colour |
| `XDG_CONFIG_HOME`, `XDG_CACHE_HOME`, `XDG_STATE_HOME` | other places for the files below |

## Files

| place | what it contains |
|---|---|
| `./runs/ENGINE/BENCHMARK/` | a run: `run.json`, `predictions.jsonl`, `scores.jsonl`, `result.json` ([runs](runs.md)) |
| `DIR/loupe.toml`, `DIR/samples.jsonl` | a folder of yours as a benchmark ([folder format](own-data.md)) |
| `./loupe.toml` | suites of a project; it overrides your own ([suites](suites.md)) |
| `~/.config/loupe/suites.toml` | your own suites |
| `~/.config/loupe/engines/NAME.toml` | your own profiles ([engines](engines.md)) |
| `~/.config/loupe/trusted` | folders whose engines you allowed ([trust](trust.md)) |
| `~/.local/state/loupe/seal.key` | the key that proves which values this machine computed |
| `~/.cache/loupe/data/` | downloaded datasets ([data](data.md)) |
| `~/.cache/loupe/environments/` | isolated environments of engines ([environments](engines/environments.md)) |
| `~/.cache/loupe/servers/` | logs of servers that Loupe started ([servers](servers.md)) |
| `~/.cache/loupe/` | everything else that can be made again: KaTeX, rendered equations, cached texts |
"""


#: By code: the commands with a meaning of their own, and that meaning.
OF_COMMANDS = {
    1: {
        "`run`, `score`": "below `--fail-under`",
        "`compare`": "a regression, with `--fail-on-regression`",
        "`lint`": "formatting faults, with `--fail-on-faults`",
        "`verify`": "a case differs",
        "`size`": "the model does not fit",
    },
    3: {
        "`run`, `score`, `infer`, `compress`": "every sample failed; with `--strict`, any",
        "`embed`": "every request of one kind failed; with `--strict`, any",
        "`draft`": "nothing was drafted",
        "`select`": "you quit it",
    },
    4: {
        "`run`, `score`, `infer`, `compress`, `draft`": "an engine is missing",
        "`embed`": "the server is missing",
        "`select`": "no model of a phase came to the end",
        "`verify`": "cases need something that is missing",
        "`load`, `demo`, `engine test`": "no engine answered",
        "`doctor`": "something required is missing",
    },
}


def pages(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The name and the help of a command, and then of everything below it."""
    context = click.Context(command, info_name=" ".join(path), **command.context_settings)
    context.meta[ALL_OPTIONS] = True
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
    rows = []
    for code, meaning in EXIT_CODES.items():
        special = OF_COMMANDS.get(code, {})
        rows.append(f"| {'in general' if special else 'any'} | {code} | {meaning.replace('|', chr(92) + '|')} |")
        rows += [f"| {commands} | {code} | {reason} |" for commands, reason in special.items()]
    parts = [INTRODUCTION.format(codes="\n".join(rows))]
    parts += [f"## `{name}`\n```text\n{text}\n```\n" for name, text in pages(root, ("loupe",))]
    return "\n".join(parts)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    target.write_text(document(), encoding="utf-8")
