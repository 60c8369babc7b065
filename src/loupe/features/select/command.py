"""`loupe select`: options, what is done with them, and how it talks with the person: questions and progress."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loupe.cli.shared.api_key import API_KEY, API_KEY_FILE
from loupe.cli.shared.chosen_engines import DEFAULT, agree_to_send
from loupe.cli.shared.errors import MISSING
from loupe.cli.shared.executor_options import ON, open_executor
from loupe.cli.shared.output import (
    ask,
    json_file_option,
    on_terminal,
    overwrite,
    plain_option,
    resume_option,
    runs_option,
    say,
    shared_option,
)
from loupe.features.select.ground_truth import QuitError
from loupe.features.select.options import Flags, check_asking, models_of, review_command, rules_of
from loupe.features.select.results import Results, check_targets
from loupe.features.select.serving import TIMEOUTS, USUAL_TIMEOUT
from loupe.results.control_characters import on_one_line
from loupe.typed import convert

if TYPE_CHECKING:
    from loupe.engines.registry import Profile
    from loupe.features.select.assessment import Assessment, Selection
    from loupe.features.select.benchmark import Known, Phase
    from loupe.features.select.documents import Truth
    from loupe.features.select.results import SavedRuns
    from loupe.features.select.serving import Candidate, ModelList
    from loupe.features.select.standings import Ranked
    from loupe.types import Sample


_FOLDER = click.Path(path_type=Path)
_BACKENDS = ("mlx", "openai", "vllm", "sglang", "llama-server", "ollama", "loupe")
_PHASES: dict[str, tuple[Phase, ...]] = {"a": ("a",), "b": ("b",), "both": ("a", "b")}


@click.command("select")
@click.option("--type", required=True, metavar="TYPE", help="What the documents are: invoice, prescription, …")
@click.option("--positive", required=True, type=_FOLDER, metavar="DIR", help="Documents that are of the type.")
@click.option("--negative", required=True, type=_FOLDER, metavar="DIR", help="Documents that are not.")
@click.option("--phase", type=click.Choice(list(_PHASES)), default="both", help="a: vision models; b: text models.")
@click.option(
    "--timeout", type=click.Choice(["10", "30", "60"]), help="Seconds per call. Asked for on a terminal, else 30."
)
@click.option(
    "--ground-truth",
    type=click.Choice(["reuse", "regenerate", "ask"]),
    default="ask",
    help="Phase b: reuse keeps existing files and drafts the missing ones, regenerate drafts all again, ask "
    "needs a terminal. Default: ask.",
)
@click.option(
    "--yes",
    is_flag=True,
    help="Continue without review: unverified ground truth stays a draft, and the table says so.",
)
@click.option("--vlm", multiple=True, metavar="ID", help="Vision model instead of the list; again for more.")
@click.option("--textllm", multiple=True, metavar="ID", help="Text model instead of the list; again for more.")
@click.option("--models", type=_FOLDER, metavar="FILE", help="TOML, JSON or YAML with `vlm` and `textllm` lists.")
@click.option(
    "--backend",
    type=click.Choice(_BACKENDS),
    help="Servers that Loupe starts, one model at a time.",
)
@click.option("--base-url", metavar="URL", help="OpenAI-compatible server that has the models, instead.")
@click.option("--served-as", multiple=True, metavar="ID=NAME", help="The server's name for a model; repeatable.")
@API_KEY_FILE
@API_KEY
@click.option("--ocr", default=DEFAULT, metavar="ENGINE", help=f"Makes the text for phase b. Default: {DEFAULT}.")
@ON
@click.option("--gt-vlm", metavar="ID", help="Vision model that drafts ground truth. Default: the first of the list.")
@click.option("--gt-textllm", metavar="ID", help="Text model that drafts it. Default: the first of the list.")
@click.option(
    "--field",
    type=click.Choice(["date", "company", "doctor"]),
    help="Field to extract besides the date; `date`: none. Default: company for invoice, doctor for prescription.",
)
@click.option("--date-order", type=click.Choice(["dmy", "mdy"]), default="dmy", help="How 03/04/2025 is read.")
@click.option("--negative-points", type=click.Choice(["1", "2"]), default="2", help="Weight of a negative in phase b.")
@json_file_option
@click.option("--save", is_flag=True, help="Keep a run for each model and phase, for compare and report.")
@runs_option
@shared_option
@resume_option
@plain_option
@click.pass_context
def command(context: click.Context, /, **flags: Any) -> None:
    """Rank vision models and text models on documents of one type.

    Phase a shows each vision model the first page and asks whether it is such a document; phase b gives each text
    model the text, asks the same, and has it extract the date and a name, which is compared with ground truth that you
    have confirmed. The phases are independent. Nothing is written but ground-truth files, unless --json or --save is
    given.
    """
    chosen = convert(flags, Flags)
    from loupe.files.scratch import scratch_folder

    with scratch_folder("loupe-select-") as folder:
        context.exit(_select(chosen, folder))


def _select(flags: Flags, folder: Path) -> int:
    from loupe.engines.chat.discovery import shown
    from loupe.engines.registry import load_profile
    from loupe.features.select.assessment import Selection
    from loupe.features.select.documents import check_stems, find_documents
    from loupe.features.select.ground_truth import refuse_misplaced
    from loupe.features.select.preparing import Wanted, prepare
    from loupe.features.select.serving import ONE_RESTART, USUAL_TIMEOUT, Limits, choose_backend, foreign_list
    from loupe.servers.keeper import Keeper

    phases, terminal, progress = _PHASES[flags.phase], Terminal(review_command(flags)), Progress(plain=flags.plain)
    rules = rules_of(flags)
    documents = find_documents(flags.positive, flags.negative, terminal.tell)
    check_asking(flags)
    lists, served_as = models_of(flags)
    ocr = load_profile(flags.ocr) if "b" in phases else None
    agree_to_send([ocr[1]] if ocr else [], yes=flags.yes)
    if "b" in phases:
        check_stems(documents)
        refuse_misplaced(documents, rules.document_type)
    check_targets(flags)
    timeout = flags.timeout or (ask_timeout(terminal) if sys.stdin.isatty() else USUAL_TIMEOUT)
    backend = asyncio.run(choose_backend(flags.backend or "", flags.base_url or "", served_as))
    if backend.variable:
        terminal.tell(f"asking {shown(backend.base_url)}, named by {backend.variable}")
    for phase in phases:
        if foreign := foreign_list(lists[phase], phase, backend):
            terminal.tell(foreign)
    executor = open_executor(flags.on, shared_data=False, profiles=[ocr] if ocr else ())
    wanted = Wanted(folder=folder, ocr=ocr, executor=executor)

    def preparing(what: str, done: int) -> None:
        progress.show(f"{what}: {done}/{len(documents)} documents")

    prepared = asyncio.run(prepare(documents, wanted, preparing))
    progress.clear()
    for ident, problem in prepared.unread.items():
        terminal.tell(f"{ident}: no text ({problem})")
    with Keeper(ONE_RESTART, say=say) as keeper:
        selection = Selection(
            documents=documents,
            rules=rules,
            prepared=prepared,
            folder=folder,
            backend=backend,
            keeper=keeper,
            limits=Limits(timeout=float(timeout)),
            show=progress.show,
            say=say,
        )
        return _Phases(flags, selection, lists, ocr, terminal, progress).run(phases)


@dataclass(slots=True)
class _Phases:
    """The phases one after the other; each is shown, and written if wanted, before the next begins."""

    flags: Flags
    selection: Selection
    lists: dict[Phase, ModelList]
    ocr: tuple[str, Profile] | None
    terminal: Terminal
    progress: Progress
    unread: Sequence[Truth] = ()

    def run(self, phases: Sequence[Phase]) -> int:
        """The exit code: something is missing where no model of a phase came to the end."""
        results = Results(self.flags)
        # A person who is there is asked before the models take their hours.
        truths = self._truths() if "b" in phases and sys.stdin.isatty() and not self.flags.yes else None
        try:
            for phase in phases:
                self._run(phase, results, truths)
        finally:
            results.print_document()
        return 0 if results.end() else MISSING

    def _run(self, phase: Phase, results: Results, truths: dict[str, Truth] | None) -> None:
        """One phase. Ctrl-C ends it with what is finished on the terminal, and the model that was asked marked."""
        selection, models = self.selection, self.lists[phase]
        known = {}
        if phase == "b":
            truths = self._truths() if truths is None else truths
            self.unread = [truth for truth in truths.values() if not truth.verified]
            known = selection.known(truths)
        samples = selection.samples(phase, known)
        ended: list[Assessment] = []
        runs = self._saved_runs(phase, known) if self.flags.save else None
        try:
            for assessment in selection.assess(phase, samples, models, interrupted=ended.append):
                ended.append(assessment)
                self.progress.clear()
                results.keep(runs, assessment)
        except KeyboardInterrupt:
            self.progress.clear()
            if any(each.asked for each in ended):
                say(f"interrupted: {len(ended)} of {len(models.models)} models were started")
                results.show(self._ranked(phase, samples, ended))
            raise
        finally:
            self.progress.clear()
        results.show(self._ranked(phase, samples, ended))

    def _ranked(self, phase: Phase, samples: Sequence[Sample], assessments: Sequence[Assessment]) -> Ranked:
        from loupe.features.select.standings import Ranked, stand

        selection = self.selection
        positives = sum(document.positive for document in selection.documents)
        return Ranked(
            phase=phase,
            document_type=selection.rules.document_type,
            field=selection.rules.field,
            positives=positives,
            negatives=len(selection.documents) - positives,
            timeout=selection.limits.timeout,
            models=self.lists[phase],
            served=selection.backend.describe(phase),
            standings=stand(phase, samples, assessments),
            unread=self.unread,
        )

    def _saved_runs(self, phase: Phase, known: Mapping[str, Known]) -> SavedRuns:
        from loupe.features.select.results import SavedRuns

        return SavedRuns(
            runs=self.flags.runs,
            phase=phase,
            rules=self.selection.rules,
            documents=self.selection.documents,
            known=known,
            models=self.lists[phase].models,
            timeout=self.selection.limits.timeout,
            ocr=self.ocr,
            shared=self.flags.shared,
        )

    def _truths(self) -> dict[str, Truth]:
        from loupe.features.select.ground_truth import Drafter, GroundTruth

        drafter = Drafter(
            rules=self.selection.rules,
            prepared=self.selection.prepared,
            text_model=self._drafting("b", self.flags.gt_textllm),
            vlm=self._drafting("a", self.flags.gt_vlm),
            open_model=self.selection.open_model,
            limits=self.selection.limits,
            blank=self.selection.warm_up_picture(),
            say=self.terminal.tell,
            tell=self._drafted,
        )
        flow = GroundTruth(
            documents=self.selection.documents,
            document_type=self.selection.rules.document_type,
            choice=self.flags.ground_truth,
            draft=drafter.draft,
            person=self.terminal,
            unattended=self.flags.yes,
        )
        return flow.settle()

    def _drafting(self, phase: Phase, ident: str | None) -> Candidate:
        from loupe.features.select.serving import candidate

        return candidate(phase, ident) if ident else self.lists[phase].first

    def _drafted(self, what: str, done: int) -> None:
        if what:
            self.progress.show(f"{what}: {done}")
        else:
            self.progress.clear()


class Terminal:
    """The person at the command line; with a pipe for input, its lines are the answers.

    `review` is the command that opens the ground-truth files beside their pages.
    """

    def __init__(self, review: str = "") -> None:
        self._review = review

    def answer(self, question: str) -> str | None:
        """Ask, and wait for a line; None at the end of input."""
        return ask(question)

    def tell(self, line: str) -> None:
        """One line of chatter, whatever a file is called."""
        say(line)

    def show(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """The ground-truth files, as a list that can be read beside an editor."""
        longest = max(len(path) for path, _, _ in rows)
        for path, day, name in rows:
            self.tell(f"  {path:<{longest}}  {day or '(no date)':<10}  {name or '(no name)'}")
        if self._review:
            say(f"to review them beside their pages: {self._review}")


class Progress:
    """One line on standard error that follows what is going on; nothing where that is no terminal."""

    def __init__(self, *, plain: bool) -> None:
        self._live = on_terminal() and not plain
        self._shown = False

    def show(self, line: str) -> None:
        """Put this line in the place of the one before."""
        if self._live:
            width = max(20, (click.get_current_context().terminal_width or _width()) - 1)
            overwrite(on_one_line(line)[:width])
            self._shown = True

    def clear(self) -> None:
        """Take the line away, so that something that stays can be written."""
        if self._shown:
            overwrite("")
            self._shown = False


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        return 80


def ask_timeout(terminal: Terminal) -> int:
    """The seconds for each call, as the person chooses. Raises QuitError at the end of input."""
    choices = "/".join(map(str, TIMEOUTS))
    while True:
        answer = terminal.answer(f"Timeout in seconds for each call [{choices}], {USUAL_TIMEOUT} on Enter?")
        if answer is None:
            raise QuitError("quit: no model was asked")
        if not answer.strip():
            return USUAL_TIMEOUT
        if answer.strip() in map(str, TIMEOUTS):
            return int(answer)
