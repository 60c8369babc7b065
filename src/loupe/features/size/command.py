"""`loupe size`: settings of server and client for a GPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from loupe.cli.shared.errors import BELOW
from loupe.cli.shared.output import as_json, json_option, plain_option, print_data, say, table

if TYPE_CHECKING:
    from loupe.features.size import models_and_cards
    from loupe.features.size.plan import Sizing

#: Heading → what stands under it; columns that no row fills are left out.
_COLUMNS: Mapping[str, Callable[[Sizing], str | int | None]] = {
    "GPU": lambda one: f"{float(one.gpu_gb):g} GB {one.gpu}".strip(),
    "KV cache": lambda one: f"{one.kv_gb_shown} GB",
    "max_num_seqs": lambda one: one.max_num_seqs,
    "batched tokens": lambda one: one.max_num_batched_tokens,
    "max_model_len": lambda one: one.max_model_len,
    "max_tokens": lambda one: one.max_tokens,
    "workers": lambda one: one.workers,
    "layout batch": lambda one: one.layout_batch,
    "image batch": lambda one: one.embed_batch_image,
    "text batch": lambda one: one.embed_batch_text,
    "concurrency": lambda one: f"{one.concurrency_shown}x" if one.fits else "does not fit",
}


@click.command("size")
@click.option(
    "--gpu",
    multiple=True,
    metavar="GB|NAME|auto",
    help="Size in GB, or 4090, A100, H100 ...; auto: the one of this machine. Default: a table.",
)
@click.option(
    "--model",
    default="glm-ocr",
    show_default=True,
    metavar="NAME|PATH",
    help="Known model, or its folder or config.json.",
)
@click.option(
    "--dtype",
    type=click.Choice(["fp8", "bf16"]),
    help="Type of the weights. Default: as in the model's name, else fp8.",
)
@click.option(
    "--tp", type=click.IntRange(1, 64), default=1, show_default=True, metavar="N", help="GPUs that share the model."
)
@click.option(
    "--util", default="0.9", show_default=True, metavar="X", help="Share of GPU memory that the server may use."
)
@click.option("--tokens", type=click.IntRange(1, 10**9), metavar="N", help="Tokens of a typical request, in and out.")
@click.option("--parameters", metavar="BILLIONS", help="Size of the model, if its weights are not in its folder.")
@json_option
@plain_option
@click.pass_context
def command(
    context: click.Context,
    /,
    gpu: tuple[str, ...],
    model: str,
    dtype: models_and_cards.Dtype | None,
    tp: int,
    util: str,
    tokens: int | None,
    parameters: str | None,
    json: bool,
    plain: bool,
) -> None:
    """Plan server and client for a GPU: what fits, how much at once, and the command line.

    Exits with 1 if the model fits on none of the cards that were named.
    """
    from loupe.errors import UsageError
    from loupe.features.size import models_and_cards
    from loupe.features.size.detection import card
    from loupe.features.size.plan import UTILIZATION, plan

    share = models_and_cards.number(util, "--util", hint="use --util 0.9")
    if share > 1:
        raise UsageError(f"--util {util}: more than all of the memory", hint="use --util 0.9")
    billions = models_and_cards.number(parameters, "--parameters", hint="use --parameters 2.1") if parameters else None
    known = models_and_cards.model_facts(model, billions=billions, tokens=tokens)
    cards = [card(text, (), os.environ) for text in gpu] or models_and_cards.known_gpus()
    plans = [plan(known, each, dtype=dtype, utilization=share, tensor_parallel=tp) for each in cards]
    nowhere = BELOW if gpu and not any(one.fits for one in plans) else 0
    if json:
        as_json([_record(one) for one in plans])
        context.exit(nowhere)
    columns = [name for name, value in _COLUMNS.items() if any(value(one) is not None for one in plans)]
    rows = [["–" if (value := _COLUMNS[name](one)) is None else str(value) for name in columns] for one in plans]
    table(columns, rows, plain=plain)
    for note in dict.fromkeys(note for one in plans for note in one.notes):
        say(note)
    if len(plans) == 1 and plans[0].fits:
        print_data(plans[0].command)
        usual = share == UTILIZATION and tp == 1 and tokens is None
        _say_of_profile(known.hub, f"{gpu[0]}:{dtype}" if dtype else gpu[0], usual=usual)
    context.exit(nowhere)


def _say_of_profile(hub: str, size: str, *, usual: bool) -> None:
    """Say how a run starts such a plan, and that it has the profile's arguments without `--size`."""
    from loupe.cli.shared.profile_text import server_commands
    from loupe.engines.chat.settings import Settings
    from loupe.engines.registry import BUILT_IN, load_profile, profile_names
    from loupe.errors import word

    for name, path in profile_names().items():
        profile = load_profile(name)[1] if path.parent == BUILT_IN else None
        if type(profile) is Settings and profile.model == hub and "vllm" in profile.servers:
            if usual:
                say(f"to start it with these and the profile's settings: -e {name} --serve vllm --size {word(size)}")
            say(f"-e {name} --serve vllm alone starts: {server_commands(profile)['vllm']}")


def _record(one: Sizing) -> dict[str, object]:
    """Every field, numbers as numbers."""
    fields: dict[str, object] = {}
    for name in one.__dataclass_fields__:
        value = getattr(one, name)
        fields[name] = round(float(value), 6) if isinstance(value, Fraction) else value
    return fields
