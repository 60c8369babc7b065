"""The options of `loupe select`, and what they say together about points and models."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from loupe.errors import UntrustedError, UsageError

if TYPE_CHECKING:
    from loupe.features.select.benchmark import Phase, Rules
    from loupe.features.select.serving import ModelList


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """The options, as click hands them over."""

    type: str
    positive: Path
    negative: Path
    phase: Literal["a", "b", "both"]
    timeout: str | None
    ground_truth: Literal["reuse", "regenerate", "ask"]
    yes: bool
    vlm: tuple[str, ...]
    textllm: tuple[str, ...]
    models: Path | None
    backend: str | None
    base_url: str | None
    served_as: tuple[str, ...]
    ocr: str
    on: str | None
    gt_vlm: str | None
    gt_textllm: str | None
    field: str | None
    date_order: Literal["dmy", "mdy"]
    negative_points: str
    json: Path | None
    save: bool
    runs: Path
    shared: bool
    plain: bool


def rules_of(flags: Flags) -> Rules:
    """Return the rules that decide about points. Raises UsageError for what does not fit together."""
    from loupe.features.select.benchmark import Rules
    from loupe.features.select.questions import USUAL_FIELDS

    document_type = " ".join(flags.type.split())
    if not document_type:
        raise UsageError("--type is empty", hint="use --type invoice")
    field = flags.field or USUAL_FIELDS.get(document_type.casefold(), "")
    runs_b = flags.phase != "a"
    if runs_b and not field:
        raise UsageError(
            f"which field of a {document_type} should be extracted besides the date?",
            hint="use --field company, doctor, or date alone",
        )
    return Rules(
        document_type=document_type,
        field=field or "company",
        negative_points=int(flags.negative_points),
        date_order=flags.date_order,
    )


def review_command(flags: Flags) -> str:
    """The command that shows the ground truth beside the pages."""
    return shlex.join(["loupe", "review", str(flags.positive), "--type", flags.type])


def check_asking(flags: Flags) -> None:
    """Raise UsageError where there is a question for a person, and nobody to ask."""
    if flags.phase != "a" and flags.ground_truth == "ask" and not sys.stdin.isatty():
        raise UsageError(
            "--ground-truth ask needs a terminal to ask at: pass --ground-truth reuse or --ground-truth regenerate",
            hint="reuse keeps existing files and drafts the missing ones, regenerate drafts all again",
        )


def models_of(flags: Flags) -> tuple[dict[Phase, ModelList], dict[str, str]]:
    """The models of each phase, and what the server calls them."""
    from loupe.features.select.serving import ModelFile, choose_models, configured_models, read_models

    drafting = {"--gt-vlm": [flags.gt_vlm], "--gt-textllm": [flags.gt_textllm]}
    for flag, idents in {"--vlm": flags.vlm, "--textllm": flags.textllm, **drafting}.items():
        if any(ident is not None and not ident.strip() for ident in idents):
            raise UsageError(f"{flag} is empty", hint=f"{flag} ID")
    file = read_models(flags.models) if flags.models else ModelFile()
    try:
        configured = configured_models()
    except UntrustedError:
        if not (flags.models or (flags.vlm and flags.textllm)):
            raise
        configured = ModelFile()  # nothing of it would be used
    served_as = {**configured.served_as, **file.served_as}
    for pair in flags.served_as:
        ident, equals, name = pair.partition("=")
        if not (ident and equals and name):
            raise UsageError(f"--served-as {pair}: not ID=NAME", hint="use --served-as mlx-community/X-4bit=x:latest")
        served_as[ident] = name
    lists: dict[Phase, ModelList] = {
        "a": choose_models("a", flags.vlm, file, configured),
        "b": choose_models("b", flags.textllm, file, configured),
    }
    return lists, served_as
