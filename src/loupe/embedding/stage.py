"""The embedding stage: texts, figures and queries of a run become vectors, and the vectors become files.

Protocol: docs/embedding.md. Every vector is in the journal before it counts; the matrices are made from the journal at
the end, so that the same command again asks only for what is missing.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

from loupe import __version__
from loupe.embedding.asking import TEXT_REQUESTS, Stage, ask_all
from loupe.embedding.client import Client, Failed
from loupe.embedding.corpus import Corpus, Row, collect
from loupe.embedding.crops import IMAGE_RULE, Cutter, cutter
from loupe.embedding.inputs import check_page_ids, check_relevant, read_queries
from loupe.embedding.journal import NAME, Settings, VectorJournal
from loupe.embedding.output import write_outputs
from loupe.embedding.plan import Plan, dimension_of, query_format_of
from loupe.engines.shared.discovery import choose_model
from loupe.engines.shared.endpoints import NO_KEY, check_served, key_for, reach, server_facts
from loupe.engines.shared.posting import open_session
from loupe.engines.shared.redaction import Redaction
from loupe.engines.shared.server_tokens import ServerTokenizer
from loupe.errors import EngineUnavailableError, UsageError
from loupe.inference.progress import Progress
from loupe.runs.folder import RunFolder
from loupe.runs.lock import locked


async def embed(plan: Plan, progress: Progress) -> Corpus:
    """Ask for every vector that is missing, and write the files. Raises LoupeError; what came back is kept.

    Rows of the corpus that is returned say which of them failed. If `progress` is told to stop, nothing is written.
    """
    run = RunFolder.open(plan.run)
    queries = read_queries(plan.queries) if plan.queries else []
    if plan.page_ids == "document":
        check_page_ids(run)
    output = plan.folder
    if plan.fresh and NAME in output.names():
        output.move_aside()
    output.create(private=not plan.shared)
    if plan.shared:
        output.open_to_others()
    with locked(output), VectorJournal(output) as journal:
        async with cutter() as cut:
            corpus = await collect(plan, run, queries, cut)
            if plan.queries:
                check_relevant(queries, [row.id for row in corpus.texts], plan.queries)
            wanted = {row.key for row in _rows(corpus) if row.key}
            missing = {key for key in wanted if not journal.has(key)}
            progress.total, progress.resumed = len(wanted), len(wanted) - len(missing)
            failed: dict[str, Failed] = {}
            uncounted: set[str] = set()
            _check_settled(plan, journal, missing)
            if missing:
                async with _opened(plan, run, journal, cut, progress) as stage:
                    await ask_all(stage, corpus, queries, missing)
                    failed, uncounted = stage.failed, stage.uncounted
        if progress.stopping:
            return corpus
        corpus = _with_failures(corpus, journal, failed)
        write_outputs(plan, run, journal, corpus, uncounted)
        return corpus


def _rows(corpus: Corpus) -> Iterator[Row]:
    yield from corpus.texts
    yield from (figure.row for figure in corpus.figures)
    yield from corpus.queries


def _check_settled(plan: Plan, journal: VectorJournal, missing: set[str]) -> None:
    """Other options than those of the vectors at hand are refused, also where nothing has to be asked."""
    if journal.settings is not None and not missing:
        journal.begin(settings_of(plan, plan.model or journal.settings.model), journal.facts)


def settings_of(plan: Plan, model: str) -> Settings:
    """What the vectors of a plan depend on."""
    form = plan.query_format or query_format_of(model)
    return Settings(
        model=model,
        endpoint=plan.endpoint,
        query_format=form,
        instruction="" if form == "plain" else plan.instruction,
        max_model_len=plan.max_model_len,
        image_rule=IMAGE_RULE,
    )


def _with_failures(corpus: Corpus, journal: VectorJournal, failed: dict[str, Failed]) -> Corpus:
    """The rows with what became of each."""

    def judged(row: Row) -> Row:
        refused = journal.error(row.key) if row.key else ""
        if refused:
            return replace(row, outcome="rejected", error=refused)
        if row.key in failed:
            return replace(row, outcome="error", error=failed[row.key].reason)
        if row.key and not journal.has(row.key):
            return replace(row, outcome="error", error="never asked")
        return row

    return replace(
        corpus,
        texts=[judged(row) for row in corpus.texts],
        figures=[replace(figure, row=judged(figure.row)) for figure in corpus.figures],
        queries=[judged(row) for row in corpus.queries],
    )


@asynccontextmanager
async def _opened(
    plan: Plan, run: RunFolder, journal: VectorJournal, cut: Cutter, progress: Progress
) -> AsyncIterator[Stage]:
    """The server found, its model settled, the journal begun."""
    import aiohttp

    key = key_for(plan.base_urls, "", os.environ)
    redaction = Redaction.of(key if key != NO_KEY else "", plan.base_urls)
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "User-Agent": f"loupe/{__version__}",
    }
    timeout = aiohttp.ClientTimeout(total=plan.timeout, sock_connect=30.0)
    connector = aiohttp.TCPConnector(limit=plan.image_batch + TEXT_REQUESTS)
    async with open_session(headers=headers, timeout=timeout, connector=connector) as session:
        with redaction.errors():
            try:
                found = await reach(plan.base_urls, session, connect_timeout=30.0)
            except EngineUnavailableError as error:
                # Local engines, which the hint may name, do not embed.
                error.hint = error.hint.partition("; without a server")[0]
                raise
            known = journal.settings.model if journal.settings else ""
            model = plan.model or known or choose_model(found[0].endpoint, found[0].server)
            check_served(model, found)
        facts = {name: redaction.text(fact) for name, fact in server_facts(model, found).items()}
        settings = settings_of(plan, model)
        journal.begin(settings, facts)
        dimension = plan.dimension or dimension_of(model) or journal.dimension
        if journal.dimension not in (None, dimension):
            raise UsageError(
                f"{plan.output} holds vectors of {journal.dimension:,} numbers, {dimension:,} are expected",
                hint="leave --dimension out, or --fresh starts over",
            )
        base_url = found[0].endpoint.base_url
        client = Client(
            session=session,
            base_url=base_url,
            model=model,
            endpoint=plan.endpoint,
            redaction=redaction,
            dimension=dimension,
        )
        tokenizer = ServerTokenizer(session, base_url, model)
        yield Stage(
            plan=plan,
            run=run,
            journal=journal,
            client=client,
            tokenizer=tokenizer,
            cutter=cut,
            progress=progress,
            settings=settings,
        )
