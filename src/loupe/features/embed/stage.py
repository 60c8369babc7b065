"""The embedding stage: texts, figures and queries of a run become vectors, and the vectors become files.

Protocol: docs/embedding.md. Every vector is in the journal before it counts; the matrices are made from the journal at
the end, so that the same command again asks only for what is missing.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace

from loupe.engines.chat.discovery import addresses_of, choose_model
from loupe.engines.chat.endpoints import (
    NO_KEY,
    STARTED,
    check_served,
    chosen_server,
    key_for,
    key_hint,
    reach,
    server_facts,
    source_of,
)
from loupe.engines.chat.exchange import Exchange, ServerTokenizer, open_session
from loupe.engines.registry import Profile
from loupe.engines.shared.redaction import Redaction
from loupe.errors import EngineUnavailableError, UsageError
from loupe.features.embed.asking import MOST_ANSWER_BYTES, TEXT_REQUESTS, Client, Failed, Stage, ask_all
from loupe.features.embed.corpus import IMAGE_RULE, Corpus, Cutter, Row, collect, cutter
from loupe.features.embed.inputs import (
    Plan,
    check_page_ids,
    check_relevant,
    dimension_of,
    query_format_of,
    read_queries,
)
from loupe.features.embed.journal import NAME, Settings, VectorJournal
from loupe.features.embed.vectors import write_outputs
from loupe.inference.progress import Progress
from loupe.pipeline.stages import watch_of
from loupe.runs.folder import RunFolder
from loupe.runs.lock import locked
from loupe.servers.keeper import Keeper
from loupe.servers.record import kept_folder
from loupe.servers.server import Server
from loupe.servers.wanted import wanted_server

#: Seconds until a server takes a connection.
_CONNECT = 30.0


async def embed(plan: Plan, progress: Progress, keeper: Keeper | None = None) -> Corpus:
    """Ask for every vector that is missing, and write the files. Raises LoupeError; what came back is kept.

    A server that is to be started is started once something is missing, and ends with the `keeper`, or with this. Rows
    of the corpus that is returned say which of them failed. If `progress` is told to stop, nothing is written.
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
                with nullcontext(keeper) if keeper else Keeper() as holding:
                    server = await _started(plan.served, holding, progress) if plan.served else None
                    async with _opened(plan, run, journal, cut, progress, server) as stage:
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
        wanted = wanted_server(plan.served, embedding=True) if plan.served else None
        model = wanted.name if wanted else plan.model
        journal.begin(settings_of(plan, model or journal.settings.model), journal.facts)


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


async def _started(profile: Profile, keeper: Keeper, progress: Progress) -> Server | None:
    """The server that a profile wants, ready for questions. Raises what starting it raises."""
    wanted = wanted_server(profile, embedding=True)
    if wanted is None:
        return None
    folder = kept_folder("embed")
    folder.create()
    return await keeper.server_for(wanted, folder, key=key_for(STARTED, "", os.environ), watch=watch_of(progress))


@asynccontextmanager
async def _opened(
    plan: Plan, run: RunFolder, journal: VectorJournal, cut: Cutter, progress: Progress, server: Server | None
) -> AsyncIterator[Stage]:
    """The server found, its model settled, the journal begun."""
    addresses = addresses_of(server.base_url if server else plan.base_urls, os.environ)
    key = key_for(addresses, "", os.environ)
    hint = key_hint(addresses, "", os.environ)
    redaction = Redaction.of(key if key != NO_KEY else "", addresses.urls)
    connections = plan.image_batch + TEXT_REQUESTS
    async with open_session(
        key, timeout=plan.timeout, connect_timeout=_CONNECT, connections=connections, urls=addresses.urls
    ) as session:
        with redaction.errors():
            try:
                found = await reach(addresses, session, connect_timeout=_CONNECT, key_hint=hint)
            except EngineUnavailableError as error:
                # Local engines, which the hint may name, do not embed.
                error.hint = error.hint.partition("; without a server")[0]
                raise
            known = journal.settings.model if journal.settings else ""
            served = server.wanted.name if server else plan.model
            model = served or known or choose_model(found[0].endpoint, found[0].server)
            check_served(model, found)
        told = server_facts(model, found) | source_of(addresses) | (server.facts if server else {})
        facts = {name: redaction.text(fact) for name, fact in told.items()}
        progress.tell(chosen_server(facts))
        settings = settings_of(plan, model)
        journal.begin(settings, facts)
        dimension = plan.dimension or dimension_of(model) or journal.dimension
        if journal.dimension not in (None, dimension):
            raise UsageError(
                f"{plan.output} holds vectors of {journal.dimension:,} numbers, {dimension:,} are expected",
                hint="leave --dimension out, or --fresh starts over",
            )
        base_url = found[0].endpoint.base_url
        exchange = Exchange(
            session=session,
            redaction=redaction,
            timeout=plan.timeout,
            connect_timeout=_CONNECT,
            most=MOST_ANSWER_BYTES,
            key_hint=hint,
        )
        client = Client(
            exchange=exchange,
            base_url=base_url,
            model=model,
            endpoint=plan.endpoint,
            progress=progress,
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
