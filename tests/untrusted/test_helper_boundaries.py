"""Helper programs: settings that somebody planted above or around count for none of them, and nothing goes there."""

from __future__ import annotations

import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loupe.data.hub import katex
from loupe.engines.environments import making
from loupe.errors import LoupeError, MissingToolError
from tests.support.made_up_package import make_profile, settings


@contextmanager
def index() -> Iterator[tuple[str, list[str]]]:
    """An index or registry on loopback that has nothing: its address, and what it was asked, passwords included."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers.get('Authorization', '')}")
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str], list[str]]]:
    """Settings of npm and uv in every folder around; the user's own server, what it was asked, what the planted was."""
    for name, value in {"HF_TOKEN": "hf-secret", "NPM_TOKEN": "of-npm", "MYVAR_X": "x-secret"}.items():
        monkeypatch.setenv(name, value)
    for name, folder in {"TMPDIR": "shared/tmp", "XDG_CACHE_HOME": "shared/cache", "HOME": "home"}.items():
        (tmp_path / folder).mkdir(parents=True)
        monkeypatch.setenv(name, str(tmp_path / folder))
    for name in ("npm_config_registry", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "LOUPE_KATEX_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", None)
    with index() as (bad, stolen), index() as (good, asked):
        for place in ("", "shared", "shared/tmp", "shared/cache", "shared/cache/loupe", "here"):
            folder = tmp_path / place
            (folder / "node_modules").mkdir(parents=True)
            (folder / "package.json").write_text("{}")
            secrets = "".join(f"//{bad}/:_authToken=${{{name}}}\n" for name in ("HF_TOKEN", "MYVAR_X"))
            (folder / ".npmrc").write_text(f"registry=http://{bad}/\n{secrets}")
            (folder / "uv.toml").write_text(f'extra-index-url = ["http://{bad}/simple"]\n')
            (folder / "pyproject.toml").write_text(
                f'[project]\nname = "a"\nversion = "1"\n[tool.uv]\nextra-index-url = ["http://{bad}/simple"]\n'
            )
        (tmp_path / "home" / ".npmrc").write_text(f"registry=http://{good}/\n//{good}/:_authToken=${{NPM_TOKEN}}\n")
        monkeypatch.chdir(tmp_path / "here")
        yield good, asked, stolen


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_npm_asks_the_registry_of_the_user_and_none_that_was_planted(planted: tuple[str, list[str], list[str]]) -> None:
    _, asked, stolen = planted
    with pytest.raises(MissingToolError, match="missing or failed"):
        katex.fetch_katex()
    assert (set(asked), stolen) == ({"/katex Bearer of-npm"}, [])


def test_uv_asks_the_index_of_the_user_and_none_that_was_planted(
    planted: tuple[str, list[str], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, asked, stolen = planted
    profile = settings({**make_profile(tmp_path / "home"), "lock": "", "environment": "free"})
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://{good}/simple")
    with pytest.raises(LoupeError, match="could not make"):
        making.make(profile)
    assert (set(asked), stolen) == ({"/simple/quill/ "}, [])
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    own = tmp_path / "home" / ".config" / "uv" / "uv.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'[[index]]\nname = "mine"\nurl = "http://{good}/simple"\ndefault = true\n')
    monkeypatch.setenv("UV_INDEX_MINE_USERNAME", "me")
    monkeypatch.setenv("UV_INDEX_MINE_PASSWORD", "of-mine")
    with pytest.raises(LoupeError, match="could not make"):
        making.make(profile)
    assert stolen == [] and asked[-1].startswith("/simple/quill/ Basic ")
