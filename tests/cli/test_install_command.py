"""The command that a hint names adds an extra to the installation that is running, wherever that came from."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from loupe.data.extras import install_command

ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Metadata of an installation that came from somewhere else."""

    def write(origin: object) -> None:
        folder = tmp_path / "loupe_ocr-9.9.9.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: loupe-ocr\nVersion: 9.9.9\n")
        if origin is not None:
            (folder / "direct_url.json").write_text(origin if isinstance(origin, str) else json.dumps(origin))
        monkeypatch.syspath_prepend(str(tmp_path))

    return write


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        (None, ["loupe-ocr[web]"]),
        ("no JSON", ["loupe-ocr[web]"]),
        ({"url": "file:///a%20b/loupe", "dir_info": {"editable": True}}, ["-e", "/a b/loupe[web]"]),
        ({"url": "file:///a/loupe", "dir_info": {}}, ["/a/loupe[web]"]),
        (
            {"url": "file:///a/loupe_ocr-0.1.0-py3-none-any.whl", "archive_info": {}},
            ["loupe-ocr[web] @ file:///a/loupe_ocr-0.1.0-py3-none-any.whl"],
        ),
        (
            {"url": "https://host/loupe", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            ["loupe-ocr[web] @ git+https://host/loupe@abc"],
        ),
    ],
)
def test_an_extra_comes_from_where_the_installation_came(
    origin: object, wanted: list[str], installed_from: Callable[[object], None]
) -> None:
    installed_from(origin)
    words = shlex.split(install_command("web"))
    assert words[words.index("install") + 1 :][-len(wanted) :] == wanted
    assert sys.executable in words
    assert ("--python" in words) == (find_spec("pip") is None)
    assert "-U" in shlex.split(install_command("web", "-U"))


def test_this_installation_is_completed_from_the_folder_of_its_code() -> None:
    """The tests run on a checkout."""
    last = shlex.split(install_command("web"))[-1]
    assert Path(last.removesuffix("[web]")).resolve() == ROOT


def test_code_that_was_never_installed_names_the_folder_it_lies_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    assert shlex.split(install_command("web"))[-2:] == ["-e", f"{ROOT}[web]"]


def test_no_hint_names_a_command_that_another_installation_needs() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    assert [path for path, text in sources.items() if "loupe-ocr[" in text or "install {PACKAGE}" in text] == []
