"""`loupe doctor`: what is here, what is not, and the one command that brings each missing thing."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

import click
import msgspec

from loupe.cli.shared.errors import MISSING
from loupe.cli.shared.output import as_json, json_option, plain_option, runs_option, say, tables
from loupe.data.extras import EXTRAS, install_command
from loupe.errors import UnsafeFileError
from loupe.files.default_places import RUNS
from loupe.files.folder import Folder
from loupe.helpers import said_by
from loupe.quantities import size

PACKAGE = "loupe-ocr"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that may be here: `required` ones make the exit code 4 when they are not; `fix` brings it."""

    part: str
    name: str
    here: bool
    detail: str = ""
    fix: str = ""
    required: bool = False


@click.command("doctor")
@runs_option
@json_option
@plain_option
@click.pass_context
def command(context: click.Context, runs: Path, json: bool, plain: bool) -> None:
    """Check what is installed, which servers answer, and how to get the rest."""
    from loupe.results.tables.record import Table

    checks = [*_python(), *_packages(), *_tools(), *_servers(), *_profiles(), *_environments(), *_folders(runs)]
    broken = [check for check in checks if check.required and not check.here]
    if json:
        as_json({"ok": not broken, "checks": checks})
    else:
        rows = [(check.part, check.name, "yes" if check.here else "no", check.detail) for check in checks]
        missing = [(check.name, check.fix) for check in checks if not check.here and check.fix]
        sections = [Table(title="", header=("part", "name", "here", "detail"), rows=rows)]
        if missing:
            sections.append(Table(title="how to install the rest", header=("for", "type this"), rows=missing))
        tables(sections, plain=plain)
    if broken:
        say(f"required checks failed: {', '.join(check.name for check in broken)}")
        context.exit(MISSING)


def _python() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    recent = sys.version_info >= (3, 11)
    yield Check(part="python", name="python", here=recent, detail=version, fix="install Python 3.11", required=True)


def _packages() -> Iterator[Check]:
    """The packages that the metadata of Loupe names: the core ones are required, those of an extra are not."""
    try:
        needed = metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        yield Check(part="core", name=PACKAGE, here=False, fix=install_command(""), required=True)
        return
    extras: dict[str, list[str]] = {}
    for line in needed:
        name = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]
        marker = re.search(r"extra\s*==\s*['\"]([^'\"]+)", line)
        extras.setdefault(marker[1] if marker else "", []).append(name)
    for name in extras.pop("", []):
        found = _version(name)
        fix = install_command("", "--force-reinstall")
        yield Check(part="core", name=name, here=bool(found), detail=found, fix=fix, required=True)
    for extra in sorted(extras.keys() - {"dev", "all"}):
        versions = {name: _version(name) for name in extras[extra]}
        detail = ", ".join(f"{name} {version or 'missing'}" for name, version in versions.items())
        if extra in EXTRAS:
            detail = f"{EXTRAS[extra].purpose.replace('`', '')}: {detail}"
        fix = install_command(extra)
        yield Check(part="extra", name=extra, here=all(versions.values()), detail=detail, fix=fix)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _tools() -> Iterator[Check]:
    mac = sys.platform == "darwin"
    program = shutil.which("tesseract")
    fix = "brew install tesseract" if mac else "sudo apt-get install tesseract-ocr tesseract-ocr-eng"
    yield Check(part="tool", name="tesseract", here=bool(program), detail=_tesseract(program), fix=fix)
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    fix = "brew install --cask chromium" if mac else "sudo apt-get install chromium"
    detail = browser or "draws equations, for math tests"
    yield Check(part="tool", name="chromium", here=bool(browser), detail=detail, fix=fix)
    yield from _equations(mac=mac)
    yield from _formulas()
    program = shutil.which("latexmlc")
    fix = "brew install latexml" if mac else "sudo apt-get install latexml"
    detail = program or "converts LaTeX tables (omnidocbench@1.6 -o latex_tables=latexml)"
    yield Check(part="tool", name="latexml", here=bool(program), detail=detail, fix=fix)


def _equations(*, mac: bool) -> Iterator[Check]:
    """What else draws equations as in the tested outcomes: KaTeX, and fonts where the system can choose them."""
    from loupe.benchmarks.shared.equations.rendering.chromium import TESTED_FONTS, font_files, fonts_identity
    from loupe.data.hub.katex import RELEASES, katex_folder, read_katex
    from loupe.errors import MissingToolError

    for release in RELEASES:
        try:
            read_katex(release)
            here, detail = True, str(katex_folder(release))
        except MissingToolError as error:
            here, detail = False, error.message
        yield Check(part="tool", name=f"katex {release.version}", here=here, detail=detail, fix="loupe setup math")
    fonts = bool(font_files())
    detail = fonts_identity()
    if not fonts:
        detail += " in place of DejaVu's: a row's five pixels may decide otherwise"
    elif detail == TESTED_FONTS:
        detail += ", as in the tested results; other fonts here are not used"
    else:
        detail += f", another version than the tested {TESTED_FONTS}; other fonts here are not used"
    fix = "" if mac else "sudo apt-get install fonts-dejavu-core"
    yield Check(part="tool", name="fonts for math", here=fonts, detail=detail, fix=fix)


#: By version of CDM: Chinese where it needs packages and fonts of its own.
_SET_BY_DOCTOR: Final = {
    "unimernet": r"\frac{a}{b}",
    "omnidocbench": r"\frac{a}{b}\text{中}",
    "omnidocbench_v16": r"\frac{a}{b}\text{中}",
    "mdpbench": r"\frac{a}{b}\text{中}",
}


def _formulas() -> Iterator[Check]:
    """TeX for CDM, tried: a formula is set and read, in every official version."""
    from loupe.metrics import cdm
    from loupe.metrics.cdm.drawing.rendering import profile_named
    from loupe.metrics.cdm.drawing.tex_setup import MissingTexError, tex_tools

    for profile, formula in _SET_BY_DOCTOR.items():
        tools = tex_tools(profile_named(profile))
        detail, here = f"missing: {', '.join(tools.missing)}", not tools.missing
        fix = tools.hint
        if here:
            try:
                found = cdm(formula, formula, profile=profile)
            except MissingTexError as error:
                detail, here, fix = str(error), False, error.hint
            else:
                here = found.f1 == 1.0
                detail = tools.version if here else f"does not draw a formula: {found.prediction_failure}"
        yield Check(part="tool", name=f"TeX for CDM, {profile}", here=here, detail=detail, fix=fix)


def _tesseract(program: str | None) -> str:
    if program is None:
        return ""
    version = _first_line([program, "--version"]).removeprefix("tesseract").strip()
    languages = _output([program, "--list-langs"]).splitlines()[1:]
    return f"{version}, languages: {' '.join(languages) or 'none'}"


def _first_line(words: list[str]) -> str:
    return _output(words).partition("\n")[0]


def _output(words: list[str]) -> str:
    try:
        done = said_by(words, seconds=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start: {error}"
    return (done.stdout or done.stderr).strip()


def _servers() -> Iterator[Check]:
    """The model server that a variable names, and those that answer on loopback; none is needed for local engines."""
    import asyncio

    from loupe.engines.chat.discovery import discover

    yield from _named_server()
    found = asyncio.run(discover())
    for endpoint in found:
        detail = "needs an API key" if endpoint.needs_key else ", ".join(endpoint.model_ids[:5]) or "no models"
        yield Check(part="server", name=endpoint.base_url, here=True, detail=detail)
    if not found:
        yield Check(
            part="server", name="on this machine", here=False, detail="none answers; local engines need no server"
        )


def _named_server() -> Iterator[Check]:
    """What an engine without an address asks, where a variable decides it."""
    import asyncio

    from loupe.engines.chat.discovery import Endpoint, addresses_of, is_named, probe, shown
    from loupe.errors import LoupeError, UsageError

    async def ask(url: str) -> Endpoint | None:
        from loupe.data.certificates import open_client

        async with open_client() as session:
            return await probe(session, url)

    try:
        named = addresses_of((), os.environ)
    except UsageError as error:
        yield Check(part="server", name=error.message.split()[0], here=False, detail=error.message, fix=error.hint)
        return
    if named.urls and is_named(named.urls[0]):
        try:
            answers = asyncio.run(ask(named.urls[0])) is not None
            detail = f"{shown(named.urls[0])} {'answers' if answers else 'does not answer'}"
            fix = "" if answers else f"start it, or unset {named.variable}"
        except LoupeError as error:
            answers, detail, fix = False, error.message, error.hint
        yield Check(part="server", name=named.variable, here=answers, detail=detail, fix=fix)


def _profiles() -> Iterator[Check]:
    """The profiles that the user wrote: in loupe.toml here, and in ~/.config/loupe/engines."""
    from loupe.engines.registry import is_built_in, load_profile, profile_names
    from loupe.errors import LoupeError

    try:
        own = {name: path for name, path in profile_names().items() if not is_built_in(path)}
    except LoupeError as error:
        yield Check(part="profile", name="loupe.toml", here=False, detail=error.message, fix=error.hint)
        return
    for name, path in own.items():
        try:
            kind = load_profile(name)[1].kind
        except LoupeError as error:
            yield Check(part="profile", name=name, here=False, detail=error.message, fix=error.hint or f"fix {path}")
        else:
            yield Check(part="profile", name=name, here=True, detail=f"{kind}, from {path}")


def _environments() -> Iterator[Check]:
    """uv, which makes environments of engines, and those that are installed."""
    from loupe.engines.environments.making import uv_command
    from loupe.engines.environments.places import made
    from loupe.errors import MissingToolError

    try:
        yield Check(part="tool", name="uv", here=True, detail=_first_line([*uv_command(), "--version"]))
    except MissingToolError as error:
        yield Check(part="tool", name="uv", here=False, detail="for loupe engine install", fix=error.hint)
    for name, folder, record in made():
        detail = f"{size(record.size)}, Python {record.python}, {folder}" if record else f"unfinished: {folder}"
        fix = f"loupe engine remove {name}"
        yield Check(part="engine", name=name, here=record is not None, detail=detail, fix=fix)


def _folders(runs: Path) -> Iterator[Check]:
    from loupe.data.user_folders import cache_folder

    try:
        with contextlib.suppress(NotADirectoryError):  # told below: not writable
            Folder(runs).refuse_if_linked()
    except UnsafeFileError as error:
        fix = f"remove the link, or name it in each command: {RUNS.option}"
        yield Check(part="folder", name="runs", here=False, detail=error.message, fix=fix, required=True)
        return
    for name, folder in (("runs", runs), ("cache", cache_folder())):
        nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        writable = nearest.is_dir() and os.access(nearest, os.W_OK)
        free = shutil.disk_usage(nearest).free
        fix = f"chmod u+w {nearest}" if nearest.is_dir() else f"mv {nearest} {nearest}.old"
        detail = f"{folder}, {size(free)} free" if writable else f"{nearest} is not writable"
        yield Check(part="folder", name=name, here=writable, detail=detail, fix=fix, required=name == "runs")
