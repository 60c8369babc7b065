"""Write docs/engines/profiles.md, which a test compares, and a page for each profile, which git ignores.

python script/make_profile_docs.py
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from loupe.cli.shared.engine_settings import caution
from loupe.cli.shared.profile_text import server_commands
from loupe.data.toml import as_toml, toml_key
from loupe.engines.environments.places import Settings as Environment
from loupe.engines.registry import BUILT_IN, Profile, load_profile, packaged_profiles
from loupe.engines.services.settings import Settings as Service

WIDTH = 138
ENGINES = Path(__file__).resolve().parents[1] / "docs" / "engines"
INTRODUCTION = """\
# All profiles

{count} profiles come with Loupe: choose one with `-e NAME`. `loupe engine show NAME` prints its settings and sources.
Each name links a page with both. `script/docs` makes these pages for the website; in a checkout, run
`python script/make_profile_docs.py`.
"""
LEGEND = """
## What the columns say
- **reads**: `image` is a picture; a PDF page is drawn as one. `PDF page` and `whole PDF` are PDF files as they are.
- **runs on**: `this machine`; `own server`: a model server or a parser's server that you start, or Loupe (`--serve`);
  `cloud`: pages leave for a service.
- **proven**: `reads`: the real program has read pages here. `stand-in`: what is sent, and how answers are read, was
  tried on a stand-in of ours for the server, model or service; never on the real one. `starts`: the real package was
  installed and imported, but never ran with its models. `installed`: not even imported. `empty`: it read nothing.
- **licence**: "unknown" is a licence that no source of ours states: read the model's card, or the service's terms.

## Add one
Save this as `~/.config/loupe/engines/mine.toml`, then `loupe engine test mine` reads a page with it:

```toml
kind = "openai"
title = "HunyuanOCR 1.0, as our service asks it"
version = "mine/1"
sources = ["our service, 25 November 2026: prompt, limit"]
needs = ["vllm serve tencent/HunyuanOCR"]
model = "tencent/HunyuanOCR"
max_tokens = 8192
temperature = 0.0
[prompts]
"*" = "Parse the page as Markdown."
```

Ten lines are enough for a [service](http.md#a-service-of-your-own-in-ten-lines) and for a
[package in an environment of its own](environments.md#add-one), too. To add one for everybody, see
[CONTRIBUTING](../../CONTRIBUTING.md#add-an-engine).
"""
#: What Markdown would take for marks of its own.
_MARKS = re.compile(r"([\\`*<>|\[\]$])")
#: What stands elsewhere on a page, and what every profile of its kind has the same.
_ELSEWHERE = frozenset({"kind", "reads", "packages"})


@dataclass(frozen=True, slots=True)
class Kind:
    """What all profiles of one kind share: the heading they stand under, the page about the kind, how it is got."""

    heading: str
    page: str
    install: str = ""


_SERVERS, _LOCAL = "Models behind a server", "Local engines"
KINDS = {
    "openai": Kind(_SERVERS, "openai.md"),
    "layout_pipeline": Kind("Layout pipelines", "layout.md", "pip install 'loupe-ocr[layout]'"),
    "http": Kind("Services, and parsers that run as servers", "http.md"),
    "environment": Kind("Packages in environments of their own", "environments.md"),
    "rapidocr": Kind(_LOCAL, "local.md", "pip install 'loupe-ocr[rapidocr]'"),
    "tesseract": Kind(_LOCAL, "local.md", "apt-get install tesseract-ocr      # macOS: brew install tesseract"),
    "pdf_text": Kind(_LOCAL, "local.md"),
}


def documents() -> dict[str, str]:
    """Every page by its path below docs/engines: the table of all, then one for each profile."""
    files = {path.stem: path for path in sorted(packaged_profiles(), key=lambda path: path.stem)}
    profiles = {name: load_profile(name)[1] for name in files}
    places = {name: f"profiles/{_group(path)}/{name}.md" for name, path in files.items()}
    return {"profiles.md": _table(profiles, places)} | {
        places[name]: _page(name, profile, files[name]) for name, profile in profiles.items()
    }


def _group(path: Path) -> str:
    return "general" if path.parent.name == BUILT_IN.name else path.parent.name


def _table(profiles: dict[str, Profile], places: dict[str, str]) -> str:
    parts = [INTRODUCTION.format(count=len(profiles))]
    for heading in dict.fromkeys(kind.heading for kind in KINDS.values()):
        parts.append(
            f"\n## {heading}\n| profile | what it is | kind | reads | runs on | proven | licence |\n{'|---' * 7}|\n"
        )
        for name, profile in profiles.items():
            if KINDS[profile.kind].heading == heading:
                link = f"[`{name}`]({places[name]})"
                cells = (link, _plain(profile.title), f"`{profile.kind}`", *_facts(name, profile), _licence(profile))
                parts.append(f"| {' | '.join(cells)} |\n")
    return "".join([*parts, LEGEND])


def _facts(name: str, profile: Profile) -> tuple[str, str, str]:
    """What it reads, where it runs, and what was proven."""
    return ", ".join(_reads(profile)), _runs_on(profile), _proven(name, profile)


def _reads(profile: Profile) -> list[str]:
    said = {"page": "PDF page", "document": "whole PDF", "pdf": "whole PDF"}
    if isinstance(profile, Environment | Service):
        return sorted(said.get(each, each) for each in profile.reads)
    if profile.kind == "pdf_text":
        return ["PDF page"]
    return ["image"]


def _runs_on(profile: Profile) -> str:
    address = bool(getattr(profile, "base_url", ""))
    if profile.hosts or (profile.kind == "http" and not address):
        return "cloud"
    served = profile.kind in ("openai", "http", "layout_pipeline") or address or getattr(profile, "asks_server", False)
    return "own server" if served or "on a server of yours" in getattr(profile, "weights", "") else "this machine"


def _proven(name: str, profile: Profile) -> str:
    if isinstance(profile, Service):
        return "reads" if profile.tried == "real" else "stand-in"
    if isinstance(profile, Environment):
        return _of_environment(name, profile)[1]
    return "reads" if KINDS[profile.kind].heading == _LOCAL else "stand-in"


def _of_environment(name: str, profile: Environment) -> tuple[str, str]:
    """What is to download, and what was tried: the last cells of its row, or of one with the same package and reader.

    The tables are in environments.md and sdk.md.
    """
    pages = [(ENGINES / page).read_text(encoding="utf-8") for page in ("environments.md", "sdk.md")]
    rows = [line.strip("| ").split(" | ") for page in pages for line in page.splitlines() if line.startswith("| `")]
    found = {row[0].strip("`"): (row[-2].strip(), row[-1].strip()) for row in rows if len(row) == 7}
    return found[name] if name in found else found[next(filter(partial(_is_like, profile), found))]


def _is_like(profile: Environment, name: str) -> bool:
    other = load_profile(name)[1]
    return isinstance(other, Environment) and (other.packages, other.reader) == (profile.packages, profile.reader)


def _licence(profile: Profile) -> str:
    return _plain(profile.licence) or "unknown"


def _page(name: str, profile: Profile, path: Path) -> str:
    about = " ".join(line[1:].strip() for line in _leading_remarks(path.read_text(encoding="utf-8")))
    reads, runs, proven = _facts(name, profile)
    lines = [
        f"# {name}\n\n**{_plain(profile.title)}**",
        *([f"\n{_wrapped(_plain(about))}"] if about else []),
        "\n| | |\n|---|---|",
        f"| kind | [`{profile.kind}`](../../{KINDS[profile.kind].page}) |",
        *(
            f"| {key} | {value} |"
            for key, value in (("reads", reads), ("runs on", runs), ("licence", _licence(profile)))
        ),
        *(f"| {key} | {_plain(value)} |" for key, value in _more(name, profile)),
        f"| proven | {proven} ([what that means](../../profiles.md#what-the-columns-say)) |",
        "\n## Get it",
        _fenced("sh", _start(name, profile)),
        f"\n## Settings\nThose that can change an answer; `loupe engine show {shlex.quote(name)}` prints all.\n",
        _fenced("toml", _settings(profile) or ["# none"]),
        *_listed("Sources", profile.sources),
        *_listed("Unproven", [unproven] if (unproven := caution(profile) or _untried(profile)) else []),
        "\n[All profiles](../../profiles.md)",
    ]
    return "\n".join(lines) + "\n"


def _untried(profile: Profile) -> str:
    return "never run with the real model: only what is sent was checked" if profile.kind == "openai" else ""


def _leading_remarks(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.startswith("#"):
            return
        yield line


def _more(name: str, profile: Profile) -> Iterator[tuple[str, str]]:
    """What else somebody must know who wants it: packages, weights, keys, price."""
    if isinstance(profile, Environment):
        yield "packages", f"{', '.join(profile.packages)}; {_of_environment(name, profile)[0]} to download"
        yield "weights", profile.weights or "none"
        if profile.programs:
            yield "programs", ", ".join(profile.programs)
    if profile.hosts:
        yield "sends pages to", ", ".join(profile.hosts)
    if keys := [f"{key}{mark}" for key, mark in _keys(profile).items()]:
        yield "keys from variables", ", ".join(keys)
    if profile.price is not None:
        yield "price (USD)", as_toml(profile.stored()["price"])


def _keys(profile: Profile) -> dict[str, str]:
    """The environment variables that hold keys, and what to say of those that need not be set."""
    if isinstance(profile, Service):
        optional = dict.fromkeys(profile.optional_secrets.values(), " (if set)")
        return dict.fromkeys(profile.secrets.values(), "") | optional
    if isinstance(profile, Environment):
        return dict.fromkeys(profile.pass_env, " (if set)")
    return {key: ""} if (key := getattr(profile, "api_key_env", "")) else {}


def _start(name: str, profile: Profile) -> Iterator[str]:
    """Commands from nothing to the first page."""
    engine, run = shlex.quote(name), f"loupe run sample_pages -e {shlex.quote(name)}"
    if isinstance(profile, Environment):
        yield f"loupe engine install {engine}{' --weights' if profile.fetches else ''}"
    elif KINDS[profile.kind].install:
        yield KINDS[profile.kind].install
    yield from (f"export {key}=…" for key, optional in _keys(profile).items() if not optional)
    yield from (f"# needs {each}" for each in profile.needs)
    if isinstance(profile, Service) and profile.start:
        yield f"# start the server: {profile.start}"
    commands = server_commands(profile)
    for kind, started in commands.items():
        yield f"# starts {started}"
        yield f"{run} --serve {kind}"
    if not commands:
        yield f"{run}{_address(profile)}"


def _address(profile: Profile) -> str:
    """The option for what the profile leaves to its user: a server, a model."""
    if isinstance(profile, Environment) and hasattr(profile, "base_url"):
        return ""  # It says where it looks.
    if isinstance(profile, Environment):
        given = {"server": "http://127.0.0.1:8000/v1"}
        return "".join(f" -o {key}={given.get(key, '…')}" for key, value in profile.options.items() if value == "")
    if getattr(profile, "base_url", ""):
        return ""
    if profile.kind == "http":
        return " --base-url https://HOST"
    model = "" if getattr(profile, "model", "") else " --model MODEL"
    served = profile.kind in ("openai", "layout_pipeline")
    return f" --base-url http://127.0.0.1:8000/v1{model}" if served else ""


def _settings(profile: Profile) -> list[str]:
    """The defining settings and the prompts as TOML, tables last."""
    said = profile.defining() | {"prompts": profile.stored()["prompts"]}
    # An empty system message is sent; nothing else is said by nothing.
    kept = {
        key: value for key, value in said.items() if value not in (None, "", [], {}) or (key, value) == ("system", "")
    }
    shown = {key: value for key, value in kept.items() if key not in _ELSEWHERE}
    tables = {key: value for key, value in shown.items() if isinstance(value, dict)}
    lines = [f"{key} = {_value(value)}" for key, value in shown.items() if key not in tables]
    for key, table in tables.items():
        lines += [f"\n[{key}]", *(f"{toml_key(each)} = {_value(value)}" for each, value in table.items())]
    return lines


def _value(value: Any) -> str:
    """As TOML; a text of several lines as it reads, where TOML and the fence around it allow that."""
    if isinstance(value, str) and "\n" in value and not re.search(r"'{3}|`{3}|[^\n -\uffff]|\x7f", value):
        return f"'''\n{value}'''"
    return as_toml(value)


def _fenced(language: str, lines: Iterable[str]) -> str:
    return "\n".join([f"```{language}", "\n".join(lines).lstrip("\n"), "```"])


def _listed(heading: str, items: list[str]) -> list[str]:
    return [f"\n## {heading}", *(_wrapped(f"- {_plain(each)}") for each in items)] if items else []


def _plain(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)


def _wrapped(text: str) -> str:
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def stale(pages: dict[str, str]) -> list[Path]:
    """Pages of profiles that are no more."""
    return [file for file in (ENGINES / "profiles").rglob("*") if file.is_file() and _name(file) not in pages]


def _name(file: Path) -> str:
    return file.relative_to(ENGINES).as_posix()


if __name__ == "__main__":
    made = documents()
    for old in stale(made):
        old.unlink()
    for place, text in made.items():
        (ENGINES / place).parent.mkdir(parents=True, exist_ok=True)
        (ENGINES / place).write_text(text, encoding="utf-8")
