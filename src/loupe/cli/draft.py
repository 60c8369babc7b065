"""`loupe draft`: let engines read the documents of a folder, and write what they read as truth to be checked."""

from __future__ import annotations

import dataclasses
import hashlib
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loupe.cli.shared.errors import SOME_FAILED, show_error
from loupe.cli.shared.flags import Flags
from loupe.cli.shared.lazy import GroupedCommand
from loupe.cli.shared.options import drafting_options, make_plans
from loupe.cli.shared.output import as_json, json_option, plain_option, say, table
from loupe.cli.shared.reading import carry_out, name_of, read_all
from loupe.errors import UsageError, word
from loupe.files.default_places import RUNS as DEFAULT
from loupe.files.folder import Folder
from loupe.typed import convert

if TYPE_CHECKING:
    from loupe.benchmarks.folders.own.config import FolderConfig
    from loupe.pipeline import Plan
    from loupe.web.review.drafts import FactsWritten, Written

#: Where the runs lie, below the folder: they have no scores, and would only be in the way among those that do.
RUNS = ".loupe/drafts"
LISTED = 10
#: How many drafts samples have, and whether these agree.
_STATES = {
    "agree": "with matching drafts",
    "differ": "with differing drafts",
    "one draft": "with one draft",
    "no draft": "without a draft",
}


@click.command("draft", cls=GroupedCommand)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@drafting_options
@click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT,
    metavar="DIR",
    help="Root of the runs. Default: DIR/.loupe/drafts.",
)
@json_option
@plain_option
@click.pass_context
def command(context: click.Context, /, folder: Path, json: bool, plain: bool, **flags: Any) -> None:
    """Draft ground truth for a folder of documents with engines, to be checked with `loupe review`.

    Drafts are marked as such and never take the place of verified truth. With several engines, fields in which they
    differ are marked and come first in review. The same command again asks for what has no answer yet, with --fresh
    also where an answer could not be used. The runs are kept in DIR/.loupe/drafts.
    """
    from loupe.benchmarks.folders.own.config import read_config
    from loupe.benchmarks.folders.own.facts import TASK, asked_as
    from loupe.pipeline.plan import draft_engine, refuse_plain_ocr
    from loupe.web.review.drafts import count_states, standing

    config, problems = read_config(folder)
    if config is None:
        raise problems[0].error()
    tasks = check_questions(folder, config)
    given = convert(flags, Flags)
    plans = [] if _is_all_read(folder, config, tasks, given) else make_plans(str(folder), given)
    for plan in plans:
        refuse_plain_ocr(plan, {asked_as(task) for task in tasks})
    if len({name_of(plan) for plan in plans}) < len(plans):
        raise UsageError("--name goes with one engine", hint="run: loupe draft DIR -e ENGINE --name NAME")
    draft = partial(draft_one, folder=folder, config=config, default_runs=given.runs is DEFAULT, plain=plain)
    drafted = carry_out(plans, draft)
    worst = drafted.code
    found = {name_of(plan): written for plan, written in drafted.found}
    facts = draft_facts(folder, config, fresh=given.fresh) if TASK in tasks else None
    show(folder, found, dict(count_states(folder, config)), facts=facts, json=json, plain=plain)
    nothing = not any(standing(folder, config, name).drafted for name in found)
    if nothing and any(one.failed for one in found.values()):
        show_error(
            "no draft was written", f"try another engine: loupe draft {word(folder)} {draft_engine(config.task)}"
        )
        worst = max(worst, SOME_FAILED)
    context.exit(worst)


def _is_all_read(folder: Path, config: FolderConfig, tasks: set[str], given: Flags) -> bool:
    """True if facts are asked alone, of pages that all have a transcript, and nobody says how an engine is to read."""
    from loupe.benchmarks.folders.own.facts import TASK
    from loupe.web.review.drafts import lacks_transcripts

    asks = given != Flags(fresh=given.fresh, yes=given.yes)
    return tasks == {TASK} and not asks and not lacks_transcripts(folder, config)


def draft_facts(folder: Path, config: FolderConfig, *, fresh: bool) -> FactsWritten:
    """Facts from the transcripts that stand in the folder now, and what is to be known of them."""
    from loupe.web.review.drafts import write_facts

    written = write_facts(folder, config, fresh=fresh)
    if written.no_math:
        say(f"facts without equations: {written.no_math}")
    for ident, reason in islice(written.failed.items(), LISTED):
        say(f"{ident}: no facts ({reason})")
    if len(written.failed) > LISTED:
        say(f"{len(written.failed) - LISTED:,} more pages could not be drafted")
    if written.without:
        listed = ", ".join(written.without[:LISTED]) + (", …" if len(written.without) > LISTED else "")
        say(f"pages with too little text for a fact: {listed}")
    return written


def check_questions(folder: Path, config: FolderConfig) -> set[str]:
    """The tasks of the folder. Raises UsageError where a question would need truth that there is not: names, labels."""
    from loupe.benchmarks.folders.own.survey import survey_folder

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
    from loupe.web.review.drafts import Written, keep_boxes, standing, write_drafts

    name = name_of(plan)
    found = standing(folder, config, name, failed=plan.fresh)
    if found.given_up:
        say(f"{name}: skips samples with unusable answers ({len(found.given_up):,}); --fresh asks again")
    if not found.wanted:
        say(f"{name}: nothing left to draft")
        return Written(), 0
    # Other samples make another run: what was drafted is not asked for again, and an interrupted run is continued.
    batch = hashlib.sha256("\n".join(found.wanted).encode()).hexdigest()[:8]
    options = {"draft_for": name, **({"draft_failed": "true"} if plan.fresh else {})}
    runs = Folder(folder) / f"{RUNS}/{batch}" if default_runs else plan.runs
    plan = dataclasses.replace(plan, runs=runs, options=options)
    carried = read_all([plan], infer, plain=plain)
    [run] = carried.results
    written = write_drafts(folder, config, name, run)
    keep_boxes(folder, name, run)
    return written, carried.code


def show(
    folder: Path,
    found: dict[str, Written],
    states: dict[str, int],
    *,
    facts: FactsWritten | None,
    json: bool,
    plain: bool,
) -> None:
    """Show what every engine drafted, what failed and why, and how much there is to review."""
    if json:
        engines = {name: dataclasses.asdict(written) for name, written in found.items()}
        drafted = {} if facts is None else {"facts": dict(facts.drafted)}
        as_json({"folder": str(folder), "engines": engines, "samples": states, **drafted})
        return
    header = ("engine", "drafted", "failed", "already reviewed")
    rows = [
        (name, f"{len(one.drafted):,}", f"{len(one.failed):,}", f"{len(one.verified) + len(one.changed):,}")
        for name, one in found.items()
    ]
    if rows:
        table(header, rows, plain=plain)
    for name, one in found.items():
        for ident, why in list(one.failed.items())[:LISTED]:
            say(f"{name} failed on {ident}: {why}")
        if len(one.failed) > LISTED:
            say(f"{name} failed on {len(one.failed) - LISTED} more")
    said = ", ".join(f"{count:,} {_STATES.get(name, name)}" for name, count in states.items() if count)
    say(f"{folder}: {said}")
    if facts is not None:
        _tell_facts(folder, facts)
    elif any(states[name] for name in ("agree", "differ", "one draft")):
        say(f"to check them: loupe review {word(folder)}")
    elif states["no draft"]:
        say(f"to enter ground truth by hand: loupe review {word(folder)}")


def _tell_facts(folder: Path, facts: FactsWritten) -> None:
    """Say how many facts of which kind there are now, and what to do with them."""
    from loupe.benchmarks.folders.own.facts import FACTS

    kinds = ", ".join(f"{count:,} {kind}" for kind, count in facts.drafted.items())
    if kinds:
        say(f"{folder / FACTS}: {facts.drafted.total():,} facts drafted: {kinds}")
    if facts.kept:
        say(f"{facts.kept:,} pages already have facts; --fresh drafts the unreviewed ones again")
    say(f"to check them: loupe review tests {word(folder / FACTS)}")
