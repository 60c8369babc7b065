"""`loupe setup math`: KaTeX comes by its npm name, and nothing else is taken for it."""

from __future__ import annotations

import http.server
import io
import shutil
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from loupe.data.hub import katex
from loupe.errors import DatasetError, MissingToolError
from tests.support.command_line import loupe


def package(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/dist/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """A registry on loopback that has another katex; there is no npm, and the cache is empty. What it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = package(**{katex.SCRIPT: b"alert(1)", katex.STYLE: b""})
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("PATH", "")
        monkeypatch.delenv("LOUPE_KATEX_DIR", raising=False)
        yield asked
        server.shutdown()
        thread.join()


def test_another_package_of_that_name_is_refused_and_leaves_nothing(registry: list[str], tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="not the package katex"):
        katex.fetch_katex()
    assert registry == ["/katex/-/katex-0.16.21.tgz"]
    assert not (tmp_path / "cache").exists()


def test_a_registry_that_does_not_answer_is_named_with_another_way(
    registry: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    with pytest.raises(DatasetError) as refused:
        katex.fetch_katex()
    assert "LOUPE_KATEX_DIR" in refused.value.hint
    assert registry == []


def test_without_npm_and_a_registry_the_other_ways_are_named(
    registry: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("npm_config_registry")
    monkeypatch.delenv("NPM_CONFIG_REGISTRY", raising=False)
    with pytest.raises(MissingToolError, match="npm, which is missing") as refused:
        katex.fetch_katex()
    assert "install npm" in refused.value.hint and "LOUPE_KATEX_DIR" in refused.value.hint
    assert registry == []


def test_files_that_are_there_are_compared_and_then_not_fetched(
    registry: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Path.home() / ".cache" / "loupe" / f"katex-{katex.DRAWING.version}"
    if not here.is_dir():
        pytest.skip("SKIPPED: loupe setup math was not run here, so no real KaTeX was compared")
    folder = tmp_path / "katex"
    shutil.copytree(here, folder)
    monkeypatch.setenv("LOUPE_KATEX_DIR", str(folder))
    assert katex.fetch_katex() == folder
    assert registry == []
    (folder / katex.STYLE).write_bytes(b"body { color: red }")
    with pytest.raises(MissingToolError, match="is not that of KaTeX"):
        katex.read_katex()
    with pytest.raises(DatasetError, match="LOUPE_KATEX_DIR"):
        katex.fetch_katex()


def test_the_command_says_where_it_would_go_and_fetches_nothing_in_a_dry_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("LOUPE_KATEX_DIR", raising=False)
    done = loupe("setup", "math", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "loupe" / "katex-0.16.21") in done.stderr
    assert not (tmp_path / "loupe").exists()
