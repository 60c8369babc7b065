"""`loupe draft`: let engines read the documents of a folder, and write what they read as truth to be checked."""

from __future__ import annotations

import dataclasses
import hashlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loupe.cli.errors import SOME_FAILED, show_error
from loupe.cli.options import Flags, make_plans, reading_options
from loupe.cli.output import as_json, json_option, plain_option, say, table
from loupe.cli.run import carry_out, read_all
from loupe.errors import UsageError, word
from loupe.typed import convert

if TYPE_CHECKING:
    from loupe.benchmarks.own.config import FolderConfig
    from loupe.pipeline import Plan
    from loupe.review.drafting import Written

#: Where the runs lie, below the folder: they have no scores, and would only be in the way among those that do.
RUNS = Path(".loupe/drafts")
LISTED = 10
#: How many drafts samples have, and whether these agree.
_STATES = {
    "agree": "drafted alike",
    "differ": "drafted differently",
    "one draft": "drafted by one engine",
    "no draft": "without a draft",
}


@click.command("draft")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@reading_options
@json_option
@plain_option
@click.pass_context
def command(context: click.Context, /, folder: Path, json: bool, plain: bool, **flags: Any) -> None:
    """Let engines write draft truth for the documents of a folder, to be checked with `loupe review`.

    Drafts are marked as such and never take the place of verified truth. With several engines, fields in which they
    differ are marked and come first in review. The same command again asks for what has no answer yet, with --fresh
    also where an answer could not be used. The runs are kept in DIR/.loupe/drafts.
    """
    from loupe.benchmarks.own.config import read_config
    from loupe.pipeline.plan import NOT_BY_OCR, refuse_plain_ocr
    from loupe.review.drafting import count_states, standing

    config, problems = read_config(folder)
    if config is None:
        raise problems[0].error()
    tasks = check_questions(folder, config)
    given = convert(flags, Flags)
    plans = make_plans(str(folder), given)
    for plan in plans:
        refuse_plain_ocr(plan.name or plan.label, plan.profile, tasks)
    if len({plan.name or plan.label for plan in plans}) < len(plans):
        raise UsageError("--name goes with one engine", hint="loupe draft DIR -e ENGINE --name NAME")
    draft = partial(draft_one, folder=folder, config=config, default_runs=given.runs == Flags().runs, plain=plain)
    drafted, worst = carry_out(plans, draft)
    found = {plan.name or plan.label: written for plan, written in drafted}
    show(folder, found, dict(count_states(folder, config)), json=json, plain=plain)
    nothing = not any(standing(folder, config, name).drafted for name in found)
    if nothing and any(one.failed for one in found.values()):
        given_up = NOT_BY_OCR.get(config.task)
        show_error(
            "nothing was drafted",
            f"plain OCR gives no {given_up}, a vision model does: loupe draft {word(folder)} --base-url URL"
            if given_up
            else "",
        )
        worst = max(worst, SOME_FAILED)
    context.exit(worst)


def check_questions(folder: Path, config: FolderConfig) -> set[str]:
    """The tasks of the folder. Raises UsageError where a question would need truth that there is not: names, labels."""
    from loupe.benchmarks.own.survey import survey_folder

    tasks, _ = survey_folder(folder)
    if "fields" in tasks and not config.fields:
        raise UsageError(f"{folder / 'loupe.toml'}: no table [fields] to ask for", hint='[fields]\ntotal = "amount"')
    if "class" in tasks and not config.labels:
        raise UsageError(f"{folder / 'loupe.toml'}: no labels to ask for", hint='labels = ["invoice", "letter"]')
    return set(tasks)


def draft_one(
    plan: Plan, folder: Path, config: FolderConfig, *, default_runs: bool, plain: bool
) -> tuple[Written, int]:
    """Ask one engine for what it has not drafted yet, and write that; also what there is of it after Ctrl-C."""
    from loupe.pipeline import infer
    from loupe.review.boxes import keep_boxes
    from loupe.review.drafting import Written, standing, write_drafts

    name = plan.name or plan.label
    found = standing(folder, config, name, failed=plan.fresh)
    if found.given_up:
        say(f"{name}: not asked again for {len(found.given_up):,} whose answers could not be used (--fresh does)")
    if not found.wanted:
        say(f"{name}: nothing left to draft")
        return Written(), 0
    # Other samples make another run: what was drafted is not asked for again, and an interrupted run is continued.
    batch = hashlib.sha256("\n".join(found.wanted).encode()).hexdigest()[:8]
    options = {"draft_for": name, **({"draft_failed": "true"} if plan.fresh else {})}
    runs = folder / RUNS / batch if default_runs else plan.runs
    plan = dataclasses.replace(plan, runs=runs, options=options)
    folders, code = read_all([plan], infer, plain=plain, unit="fraction")
    written = write_drafts(folder, config, name, folders[0])
    keep_boxes(folder, name, folders[0])
    return written, code


def show(folder: Path, found: dict[str, Written], states: dict[str, int], *, json: bool, plain: bool) -> None:
    """What every engine drafted, what failed and why, and how much there is to review."""
    if json:
        engines = {name: dataclasses.asdict(written) for name, written in found.items()}
        as_json({"folder": str(folder), "engines": engines, "samples": states})
        return
    header = ("engine", "drafted", "failed", "left alone")
    rows = [
        (name, f"{len(one.drafted):,}", f"{len(one.failed):,}", f"{len(one.verified) + len(one.changed):,}")
        for name, one in found.items()
    ]
    table(header, rows, plain=plain)
    for name, one in found.items():
        for ident, why in list(one.failed.items())[:LISTED]:
            say(f"{name} failed on {ident}: {why}")
        if len(one.failed) > LISTED:
            say(f"{name} failed on {len(one.failed) - LISTED} more")
    said = ", ".join(f"{count:,} {_STATES.get(name, name)}" for name, count in states.items() if count)
    say(f"{folder}: {said}")
    if any(states[name] for name in ("agree", "differ", "one draft")):
        say(f"to check them: loupe review {word(folder)}")
    elif states["no draft"]:
        say(f"to type the truth without drafts: loupe review {word(folder)}")
