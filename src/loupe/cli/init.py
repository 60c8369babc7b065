"""`loupe init`: make a folder of images and PDF files a benchmark: what is asked, and one line per page or document."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loupe.benchmarks.folders.own.config import FIELD_TYPES
from loupe.cli.shared.output import as_json, json_option, print_line, prompt, say
from loupe.errors import UsageError, did_you_mean, word
from loupe.files.file_names import same_form
from loupe.quantities import counted

if TYPE_CHECKING:
    from loupe.benchmarks.folders.own.config import FieldType, Task
    from loupe.benchmarks.folders.own.folder_files import Found
    from loupe.benchmarks.folders.own.starting import Beginning

#: What may be asked of documents, with a word on each. `tables` is how people say `table`.
TASKS: dict[Task, str] = {
    "text": "plain text of each page",
    "markdown": "the same with headings, lists and tables",
    "table": "one table per page",
    "fields": "values by name: date, total, …",
    "class": "what kind of document it is",
    "facts": "tests of each page: text, order, tables, equations",
}
_LISTED = 5


@click.command("init")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option("--task", metavar="TASK", help=f"Task: {', '.join(TASKS)}.")
@click.option(
    "--field",
    multiple=True,
    metavar="NAME:TYPE",
    help=f"A field, its type {', '.join(FIELD_TYPES)}; again for more.",
)
@click.option(
    "--label",
    multiple=True,
    metavar="[FOLDER=]NAME",
    help="A label, or the label of the documents in a sub-folder; repeatable.",
)
@click.option("--title", default="", metavar="TEXT", help="Default: the name of the folder.")
@click.option(
    "--pages", type=click.IntRange(min=1), metavar="N", help="Pages used of a document. Default: fields 4, class 1."
)
@json_option
def command(
    folder: Path,
    task: str | None,
    field: Sequence[str],
    label: Sequence[str],
    title: str,
    pages: int | None,
    json: bool,
) -> None:
    """Turn a folder of images and PDF files into a benchmark.

    Writes loupe.toml and samples.jsonl into DIR: for text, markdown, table and facts one line per page, for fields and
    class one per document. In a terminal it asks what is not given. Documents in `positive/` and `negative/` get their
    class from the folder; everything else is left to `loupe draft` and `loupe review`. Nothing is overwritten: an
    existing loupe.toml decides the task, and only samples.jsonl is written.
    """
    from loupe.benchmarks.folders.own.config import CONFIG
    from loupe.benchmarks.folders.own.folder_files import find_documents
    from loupe.benchmarks.folders.own.starting import begin, refuse_existing, settled

    is_settled = (folder / CONFIG).exists()
    if is_settled or task is None:  # Else a killed process may have begun it.
        refuse_existing(folder)
    if is_settled:
        _refuse_what_settings_say(folder, task, field, title)
    found = find_documents(folder)
    if is_settled:
        beginning = settled(folder, found, label, pages)
    else:
        beginning = ask(found, task=task, fields=field, labels=label, title=title, pages=pages)
    samples = begin(folder, found, beginning)
    if json:
        counts = {"documents": len(found.documents), "samples": samples}
        as_json(
            {
                "folder": str(folder),
                "task": beginning.task,
                **counts,
                "left_out": dict(found.left_out),
                "remarks": dict(found.remarks),
            }
        )
        return
    _tell(folder, found, beginning, samples, is_settled=is_settled)


def _refuse_what_settings_say(folder: Path, task: str | None, fields: Sequence[str], title: str) -> None:
    """Raise UsageError for flags that say what the loupe.toml of the folder says, unless it says the same task."""
    from loupe.benchmarks.folders.own.config import CONFIG, FolderConfig, read_config

    asks = (read_config(folder)[0] or FolderConfig()).task
    given = {"--task": task not in (None, asks), "--field": bool(fields), "--title": bool(title)}
    if flags := [flag for flag, is_given in given.items() if is_given]:
        raise UsageError(
            f"{folder / CONFIG} exists already and sets the task; nothing was changed",
            hint=f"drop {' and '.join(flags)} to use it: loupe init {word(folder)}; or move the file away",
        )


def _tell(folder: Path, found: Found, beginning: Beginning, samples: int, *, is_settled: bool) -> None:
    """Say what was found, left out and written, and what to do now."""
    from loupe.benchmarks.folders.own.config import CONFIG, SAMPLES
    from loupe.benchmarks.folders.own.folder_files import reasons
    from loupe.benchmarks.folders.own.starting import FIRST_PAGES, cut_documents, same_names

    documents = counted(len(found.documents), "document")
    print_line(f"{folder}: {documents}, {counted(samples, 'sample')}, task {beginning.task}")
    for line in reasons(found.left_out):
        say(f"left out {line}")
    for line in reasons(found.remarks):
        say(line)
    for name, first in same_names(found)[:_LISTED]:
        if same_form(name) == same_form(first):  # They look the same.
            name, first = ascii(name), ascii(first)
        say(f"{name} and {first} have the same name and count as two documents; remove one if they are equal")
    if cut := cut_documents(found, beginning):
        shown = beginning.pages or FIRST_PAGES[beginning.task]
        used = "only the first page is" if shown == 1 else f"only the first {shown} pages are"
        say(f"{counted(cut, 'document')} with more pages: {used} used (--pages N)")
    wrote = (
        f"{folder / SAMPLES}, as {folder / CONFIG} asks" if is_settled else f"{folder / CONFIG} and {folder / SAMPLES}"
    )
    say(f"wrote {wrote}")
    say(next_step(folder, beginning, found))


def ask(
    found: Found,
    *,
    task: str | None,
    fields: Sequence[str],
    labels: Sequence[str],
    title: str,
    pages: int | None,
) -> Beginning:
    """Read what the flags say, and in a terminal the answers to what they leave open. Raises UsageError."""
    from loupe.benchmarks.folders.own.config import label_mistakes
    from loupe.benchmarks.folders.own.starting import Beginning, label_map

    people = sys.stdin.isatty() and sys.stderr.isatty()
    chosen = _task(task or _usual_task(found, fields, labels) or (_ask_task(found) if people else ""))
    if fields and chosen != "fields":
        raise UsageError("--field goes with --task fields", hint="run: loupe init DIR --task fields --field date:date")
    if labels and chosen != "class":
        raise UsageError("--label goes with --task class", hint="run: loupe init DIR --task class --label invoice")
    types = dict(map(_field, fields))
    if chosen == "fields" and not types:
        types = _ask_fields() if people else {}
        if not types:
            raise UsageError("no field named", hint="use --field date:date --field total:amount")
    named = label_map(found, labels) if chosen == "class" else {}
    if chosen == "class" and people and not labels:
        named = _ask_labels(found, named)
    if chosen == "class" and len(set(named.values())) < 2:
        raise UsageError("a class needs two labels or more", hint="use --label invoice --label letter, or FOLDER=NAME")
    if message := next(label_mistakes(list(dict.fromkeys(named.values()))), ""):
        raise UsageError(message, hint="use --label invoice --label letter, or FOLDER=NAME")
    return Beginning(task=chosen, title=title, fields=types, labels=named, pages=pages)


def _usual_task(found: Found, fields: Sequence[str], labels: Sequence[str]) -> str:
    """The task that flags or folders leave no doubt about."""
    if fields and not labels:
        return "fields"
    return "class" if labels or (found.is_sorted and not sys.stdin.isatty()) else ""


def _task(name: str) -> Task:
    """Raises UsageError for a name that is none, and for none."""
    plain = {"tables": "table", "classes": "class", "field": "fields"}.get(name, name)
    if not plain:
        raise UsageError("which task?", hint=f"use --task {', --task '.join(TASKS)}")
    found = next((task for task in TASKS if task == plain), None)
    if found is None:
        raise UsageError(f"no task {name!r}{did_you_mean(name, TASKS)}", hint=f"tasks: {', '.join(TASKS)}")
    return found


def _field(text: str) -> tuple[str, FieldType]:
    """`name:type`; a bare name is a text. Raises UsageError for a type that there is not."""
    name, _, kind = text.strip().rpartition(":") if ":" in text else (text.strip(), "", "text")
    kind = kind.strip()
    found = next((known for known in FIELD_TYPES if known == kind), None)
    if not name.strip() or found is None:
        raise UsageError(
            f"field {text!r}: no type {kind!r}{did_you_mean(kind, FIELD_TYPES)}",
            hint=f"NAME:TYPE, types: {', '.join(FIELD_TYPES)}",
        )
    return name.strip(), found


def _ask_task(found: Found) -> str:
    for name, meaning in TASKS.items():
        say(f"  {name:<9} {meaning}")
    usual = "class" if found.is_sorted else "fields"
    while True:
        answer = prompt("Which task?", default=usual)
        try:
            return _task(answer)
        except UsageError as error:
            say(error.message)


def _ask_fields() -> dict[str, FieldType]:
    say(f"Fields as name:type, one per line, an empty line ends; types: {', '.join(FIELD_TYPES)}")
    found: dict[str, FieldType] = {}
    while answer := prompt("field"):
        try:
            name, kind = _field(answer)
            found[name] = kind
        except UsageError as error:
            say(error.message)
    return found


def _ask_labels(found: Found, named: dict[str, str]) -> dict[str, str]:
    """Ask what the documents of each folder are; without folders, the labels one by one."""
    if found.folders:
        return {
            name: prompt(f"What are the documents in {name}/?", default=named.get(name, name)) for name in found.folders
        }
    say("Labels, one per line, an empty line ends")
    labels: dict[str, str] = {}
    while answer := prompt("label"):
        labels[answer] = answer
    return labels


def next_step(folder: Path, beginning: Beginning, found: Found) -> str:
    """Say what to do now."""
    if beginning.task == "class" and all(one.sorted_into in beginning.labels for one in found.documents):
        return f"next: loupe run {word(folder)} -e ENGINE"
    from loupe.benchmarks.folders.own.facts import FACTS, TASK
    from loupe.pipeline.plan import draft_engine

    review = f"tests {word(folder / FACTS)}" if beginning.task == TASK else word(folder)
    return f"next: loupe draft {word(folder)} {draft_engine(beginning.task)}, then loupe review {review}"
