"""`loupe embed`: the pages of a run as vectors, and how well they are found."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loupe.cli.shared.api_key import API_KEY, API_KEY_FILE
from loupe.cli.shared.errors import SOME_FAILED, continue_command
from loupe.cli.shared.exit_verdict import strict_option
from loupe.cli.shared.lazy import GroupedCommand
from loupe.cli.shared.output import (
    as_json,
    fresh_option,
    json_option,
    plain_option,
    print_line,
    say,
    shared_option,
    tables,
)
from loupe.cli.shared.run_paths import RunPath
from loupe.cli.shared.server_options import (
    SERVER_OVERRIDES,
    check_serve,
    check_server_settings,
    plan_server,
    say_plan,
    server_options,
)
from loupe.errors import UsageError
from loupe.files.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loupe.cli.shared.server_options import ServerPlan
    from loupe.engines.chat.settings import Settings
    from loupe.features.embed.inputs import Plan
    from loupe.features.embed.retrieval import Retrieval
    from loupe.features.embed.vectors import Embeddings
    from loupe.results.tables.record import Table
    from loupe.stats.comparison import Difference

#: Columns of the table; retrieval.json and --json have the rest.
SHOWN = ("ndcg@5", "ndcg@10", "recall@1", "recall@5", "recall@10")
_PATH = click.Path(path_type=Path)
_POSITIVE = click.IntRange(min=1)
RETRIEVAL = "retrieval.json"
#: Failed rows that are named.
LISTED = 5


@click.command("embed", cls=GroupedCommand)
@click.argument("run", metavar="RUN | FOLDER", type=RunPath())
@click.option("--queries", type=_PATH, metavar="FILE", help="JSON lines: query_id, text, relevant {page id: grade}.")
@click.option(
    "--base-url", multiple=True, metavar="URL", help="URL of the embedding server. Default: one found on this machine."
)
@API_KEY_FILE
@API_KEY
@click.option("--model", default="", metavar="ID", help="Model at the server. Default: its only model.")
@server_options
@click.option(
    "--endpoint",
    type=click.Choice(["embeddings", "pooling"]),
    default="embeddings",
    show_default=True,
    help="/v1/embeddings, or vLLM's /pooling.",
)
@click.option(
    "--query-format",
    type=click.Choice(["system", "instruct", "plain"]),
    help="How queries carry the instruction. Default: as the model's family wants it.",
)
@click.option("--instruction", metavar="TEXT", help="Instruction for queries; part of the fingerprint.")
@click.option("--text-batch", type=_POSITIVE, metavar="N", help="Texts per request. Default: 32.")
@click.option("--image-batch", type=_POSITIVE, metavar="N", help="Images in flight. Default: 30, or as --size plans.")
@click.option(
    "--max-model-len", type=click.IntRange(min=64), metavar="N", help="Maximum tokens of a text. Default: 8192."
)
@click.option("--dimension", type=_POSITIVE, metavar="N", help="Dimension of the vectors. Default: the model's.")
@click.option(
    "--page-ids",
    type=click.Choice(["document", "sample"]),
    default="document",
    show_default=True,
    help="STEM_p0 after the document, or the sample's id.",
)
@click.option("--regions", "regions_file", type=_PATH, metavar="FILE", help="JSON lines: page_id, regions [...].")
@click.option("--no-regions", is_flag=True, help="Texts only.")
@click.option("-o", "--output", type=_PATH, metavar="DIR", help="Default: RUN/embeddings.")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=300.0, metavar="S", help="Seconds per request."
)
@fresh_option
@shared_option
@click.option("--mixed", is_flag=True, help="Score queries that were embedded with other settings than the corpus.")
@click.option("--against", type=_PATH, metavar="DIR", help="Scored vectors of another run to compare with.")
@strict_option
@json_option
@plain_option
@click.pass_context
def command(context: click.Context, /, run: Path, json: bool, plain: bool, **flags: Any) -> None:
    """Embed page texts, figures with their captions, and queries; score retrieval.

    RUN is a run of any engine; the same command again asks only for what is missing. A FOLDER of existing vectors
    (corpus_ocr_text.npy, page_ids.json, queries.npy, ...) is checked and scored without a model.
    """
    if not (run / "run.json").exists() and (run / "corpus_ocr_text.npy").exists():
        _show(run, None, flags, context, json=json, plain=plain)
        return
    from loupe.runs.opening import open_run

    open_run(run)
    plan = _plan(run, flags)
    _embed(plan, plain=plain)
    _show(plan.output, plan, flags, context, json=json, plain=plain)


def _plan(run: Path, flags: dict[str, Any]) -> Plan:
    from loupe.features.embed.inputs import INSTRUCTION, MAX_MODEL_LEN, Plan

    served, plan = _server(flags)
    planned = (plan.text_batch, plan.image_batch) if plan else (None, None)
    return Plan(
        run=run,
        output=flags["output"] or run / "embeddings",
        queries=flags["queries"],
        base_urls=flags["base_url"],
        served=served,
        model=flags["model"],
        endpoint=flags["endpoint"],
        query_format=flags["query_format"] or "",
        instruction=flags["instruction"] or INSTRUCTION,
        max_model_len=flags["max_model_len"] or MAX_MODEL_LEN,
        dimension=flags["dimension"],
        text_batch=flags["text_batch"] or planned[0] or Plan.text_batch,
        image_batch=flags["image_batch"] or planned[1] or Plan.image_batch,
        timeout=flags["timeout"],
        page_ids=flags["page_ids"],
        regions_file=flags["regions_file"],
        with_regions=not flags["no_regions"],
        fresh=flags["fresh"],
        shared=flags["shared"],
    )


def _server(flags: dict[str, Any]) -> tuple[Settings | None, ServerPlan | None]:
    """The server that is to be started, and what was planned for it. Raises UsageError for one that makes no sense."""
    from loupe.cli.shared.chosen_engines import configure, override_table
    from loupe.cli.shared.flags import Flags
    from loupe.engines.chat.settings import Settings
    from loupe.servers.wanted import wanted_server

    given = override_table(Flags(**{key: flags[key] for key in ("base_url", "model", *SERVER_OVERRIDES)}))
    check_serve(given)
    _, profile = configure("openai", given)
    check_server_settings(given | ({"size": True} if flags["size"] else {}), [("embed", profile)])
    if not (isinstance(profile, Settings) and profile.serve):
        return None, None
    wanted_server(profile, embedding=True)
    if not flags["size"]:
        return profile, None
    plan = plan_server(profile, flags["size"], embedding=True)
    if plan.image_batch is None:
        raise UsageError(
            f"--size: {plan.model} can be planned for reading pages only, not for embedding",
            hint="choose a model of vectors: --serve vllm:MODEL",
        )
    say_plan("embed", plan)
    return plan.profile, plan


def _embed(plan: Plan, *, plain: bool) -> None:
    from loupe.cli.shared.progress import supervise
    from loupe.features.embed.stage import embed
    from loupe.inference.progress import Progress
    from loupe.servers.keeper import Keeper

    progress = Progress(engine="embed", benchmark=str(plan.run))
    try:
        with Keeper(say=say) as keeper:
            asyncio.run(supervise(embed(plan, progress, keeper), progress, plain=plain))
    except asyncio.CancelledError:
        progress.request_stop()
    if progress.stopping:
        say(f"stopped; to continue: {continue_command()}")
        raise KeyboardInterrupt


def _show(
    folder: Path, plan: Plan | None, flags: dict[str, Any], context: click.Context, *, json: bool, plain: bool
) -> None:
    """Check what is in the folder, score it where relevance is given, and print both."""
    from loupe.engines.chat.endpoints import unlisted_model
    from loupe.features.embed.inputs import check_relevant, read_queries
    from loupe.features.embed.retrieval import score
    from loupe.features.embed.vectors import read_embeddings, write_json

    found = read_embeddings(folder, mixed=flags["mixed"])
    retrieval: Retrieval | None = None
    lost = found.without_any()
    if flags["queries"]:
        queries = read_queries(flags["queries"])
        check_relevant(queries, found.page_ids, flags["queries"])
        if any(query.relevant for query in queries) and not {"pages", "queries"} & set(lost):
            retrieval = score(found, queries, _texts(plan) if plan else None)
            write_json(plan.folder if plan else Folder(folder), RETRIEVAL, retrieval)
    elif plan is None:
        raise UsageError("existing vectors need --queries FILE to be scored", hint="docs/embedding.md")
    compared = None
    if flags["against"]:
        if retrieval is None and not lost:
            raise UsageError(
                "--against compares scores, and these vectors have none", hint="use --queries FILE with relevant pages"
            )
        from loupe.features.embed.retrieval import differences

        compared = differences(retrieval, flags["against"], RETRIEVAL) if retrieval else None
    failed = [error for error in found.meta.errors if error.outcome != "empty"]
    if json:
        shapes = {"texts": found.texts.shape, "regions": found.regions.shape}
        shapes |= {"queries": found.queries.shape} if found.queries is not None else {}
        as_json(
            {"folder": str(folder), "shapes": shapes, "meta": found.meta, "retrieval": retrieval, "against": compared}
        )
    else:
        tables([*_sections(found, retrieval), *_compared(compared or {}, flags["against"])], plain=plain)
        print_line(f"saved in {folder}")
    for error in failed[:LISTED]:
        say(f"failed: {error.id}: {error.error}")
    if unlisted := unlisted_model(found.meta.server):
        say(unlisted)
    for kind in lost:
        say(f"all requests for the {kind} failed: no vectors")
    context.exit(SOME_FAILED if lost or (failed and flags["strict"]) else 0)


def _texts(plan: Plan) -> Iterator[str]:
    """The texts of the pages, in the order of their rows."""
    from loupe.features.embed.corpus import pages
    from loupe.runs.folder import RunFolder

    return (page.text for page in pages(plan, RunFolder.open(plan.run)))


def _sections(found: Embeddings, retrieval: Retrieval | None) -> list[Table]:
    """Rows and what was wrong with some, and the scores of every system."""
    from loupe.results.sections import format_range, format_value
    from loupe.results.tables.record import Table

    rows = [("pages", f"{len(found.texts):,} x {found.texts.shape[1]:,}")]
    rows += [("regions", f"{len(found.regions):,}")] if len(found.regions) else []
    rows += [("queries", f"{len(found.queries):,}")] if found.queries is not None else []
    shown = ("regions_too_small", "regions_left_out", "truncated", "long_but_not_counted", "empty", "failed")
    rows += [(name.replace("_", " "), f"{count:,}") for name in shown if (count := found.meta.counts.get(name))]
    sections = [Table(title=f"embeddings by {found.meta.model or 'an unknown model'}", rows=rows)]
    if retrieval is None:
        return sections
    table = []
    for system, scores in retrieval.scores.items():
        cells = [format_value(scores[name].value, "fraction") if name in scores else "" for name in SHOWN]
        first = scores[SHOWN[0]]
        table.append((system, cells[0], format_range(first.low, first.high, "fraction"), *cells[1:]))
    left = (
        f", {retrieval.without_relevant:,} without a relevant page are left out" if retrieval.without_relevant else ""
    )
    title = f"retrieval, {retrieval.queries:,} queries over {retrieval.pages:,} pages{left}"
    header = ("system", SHOWN[0], "95 % interval", *SHOWN[1:])
    return [*sections, Table(title=title, header=header, rows=table)]


def _compared(found: Mapping[str, Mapping[str, Difference]], other: Path) -> Iterator[Table]:
    """Show how much better these vectors are found than those of another run, over the queries of both."""
    from loupe.results.tables.record import Table
    from loupe.results.visible_differences import DIFFERENCE_HEADER, difference_cells

    rows = [
        (system, name, *difference_cells(one, "fraction", higher_is_better=True))
        for system, measures in found.items()
        for name, one in measures.items()
        if one.difference is not None and name.startswith("ndcg")
    ]
    if rows:
        header = ("system", "measure", *DIFFERENCE_HEADER)
        yield Table(title=f"minus {other}, paired by query", header=header, rows=rows)
