"""`loupe engine`: which engines there are, how one is set up, and whether it reads a page right now."""

from __future__ import annotations

import click

from loupe.cli.lazy import SuggestingGroup
from loupe.cli.output import as_json, json_option, plain_option, say, table


@click.group("engine", cls=SuggestingGroup)
def command() -> None:
    """List, show and try engines."""


@command.command("list")
@json_option
@plain_option
def list_engines(json: bool, plain: bool) -> None:
    """List the profiles by name, and the kinds that they and you can use."""
    from loupe.engines.registry import engine_kinds, engine_module, load_profile, profile_names

    rows = []
    for name, path in profile_names().items():
        profile = load_profile(name)[1]
        rows.append({"engine": name, "kind": profile.kind, "title": profile.title, "from": _origin(path)})
    named = {row["engine"] for row in rows}
    for kind in engine_kinds():
        if kind not in named:
            summary = (engine_module(kind).__doc__ or "").strip().partition("\n")[0]
            rows.append({"engine": kind, "kind": kind, "title": summary, "from": "kind"})
    if json:
        as_json(rows)
        return
    header = ("engine", "kind", "title", "from")
    table(header, [tuple(row[key] for key in header) for row in rows], plain=plain)
    say("any OpenAI-compatible server: loupe run BENCH --base-url http://127.0.0.1:8000/v1")


def _origin(path: object) -> str:
    from loupe.engines.registry import BUILT_IN

    return "loupe" if str(path).startswith(str(BUILT_IN)) else str(path)
