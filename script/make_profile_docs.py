"""Write docs/engines/profiles.md from the profiles that come with Loupe; a test compares the two.

python script/make_profile_docs.py [FILE]
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from loupe.cli.shared.engine_settings import caution
from loupe.engines.registry import BUILT_IN, Profile, load_profile

WIDTH = 138
DOCS = Path(__file__).resolve().parents[1] / "docs" / "engines" / "profiles.md"
INTRODUCTION = """\
# All profiles

Made by `python script/make_profile_docs.py` from the profiles that come with Loupe; a test compares the two.
`loupe engine show NAME` prints all settings of one. Adding one takes a few lines of TOML:
[models](models.md#one-more-source), [services](http.md).

"Unknown" is a licence that no source of ours states: read the model's card, or the service's terms.

| profile | kind | what it is | licence |
|---|---|---|---|
"""
#: What Markdown would take for marks of its own.
_MARKS = re.compile(r"([\\`*<>|\[\]$])")


def document() -> str:
    """The whole page."""
    names = sorted(path.stem for path in BUILT_IN.rglob("*.toml"))
    profiles = {name: load_profile(name)[1] for name in names}
    rows = [_row(name, each) for name, each in profiles.items()]
    return INTRODUCTION + "".join(rows) + "".join(_section(name, each) for name, each in profiles.items())


def _row(name: str, profile: Profile) -> str:
    said = (f"[`{name}`](#{_anchor(name)})", f"`{profile.kind}`", _plain(profile.title), _plain(profile.licence))
    return f"| {' | '.join(each or 'unknown' for each in said)} |\n"


def _section(name: str, profile: Profile) -> str:
    remarks = next(path for path in BUILT_IN.rglob("*.toml") if path.stem == name).read_text(encoding="utf-8")
    about = " ".join(line[1:].strip() for line in _leading_remarks(remarks))
    lines = [f'\n<a id="{_anchor(name)}"></a>\n\n## {name}\n']
    lines += [_wrapped(_plain(about))] if about else []
    lines += [_wrapped(f"- **Source**: {_plain(each)}") for each in profile.sources]
    lines += [_wrapped(f"- **Needs**: {_plain(each)}") for each in profile.needs]
    lines += [_wrapped(f"- **Unproven**: {_plain(unproven)}")] if (unproven := caution(profile)) else []
    return "\n".join(lines) + "\n"


def _leading_remarks(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.startswith("#"):
            return
        yield line


def _anchor(name: str) -> str:
    return "profile-" + re.sub(r"[^a-z0-9]+", "-", name)


def _plain(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)


def _wrapped(text: str) -> str:
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS).write_text(document(), encoding="utf-8")
