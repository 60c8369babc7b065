"""The note that few pages carry most of an error stands wherever the numbers of a run do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from xml.etree import ElementTree

import pytest

import loupe as api
from loupe.results.sections import carried_by_few
from tests.support.command_line import loupe, make_folder
from tests.support.web.view_app import viewed

RUNS = ("runs/one/mydocs", "runs/other/mydocs")
#: Each engine loses another page altogether.
READERS = "".join(
    f"def {name}(request):\n    return '' if request.id == '{lost}' else request.text\n\n"
    for name, lost in (("one", "p3"), ("other", "p4"))
)
PLACES = [
    *("run", "score", "run.md", "run.xml", "Python", "notebook of a run", "page of a run", "page of a benchmark"),
    *("compare", "compare --json", "compare.md", "compare.xml", "notebook of a comparison", "page of two runs"),
    "report.html",
]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What each place says of two runs, and under "" the note."""
    root = tmp_path_factory.mktemp("noted")
    make_folder(root, count=12)
    (root / "reader.py").write_text(READERS)
    found = {}
    for name in ("one", "other"):
        words = ["--name", name, "--junit", "run.xml", "--markdown", "run.md"]
        found["run"] = loupe("run", "mydocs", "-e", f"python:reader.py:{name}", *words, cwd=root).stdout
    found["score"] = loupe("score", RUNS[1], cwd=root).stdout
    words = ["--junit", "compare.xml", "--markdown", "compare.md"]
    found["compare"] = loupe("compare", *RUNS, *words, cwd=root).stdout
    found["compare --json"] = loupe("compare", *RUNS, "--json", cwd=root).stdout
    loupe("report", *RUNS, "-o", "report.html", cwd=root)
    found |= {name: (root / name).read_text("utf-8") for name in ("run.md", "compare.md", "report.html")}
    for name in ("run.xml", "compare.xml"):
        found[name] = "\n".join(each.text or "" for each in ElementTree.parse(root / name).iter("system-out"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        run = api.load_run(RUNS[1])
        found |= {"": carried_by_few(run.result), "Python": "\n".join(run.warnings)}
        found |= {"notebook of a run": run._repr_html_()}
        found |= {"notebook of a comparison": api.compare(*RUNS)._repr_html_()}
    with viewed(root / "runs", home=root) as server:
        for place, link in (("page of a benchmark", r'"(/b/[^"/?]+)"'), ("page of a run", r'"(/run/[^"/?]+)"')):
            home = server.ask("/")[2].decode()
            found[place] = server.ask(re.findall(link, home)[0])[2].decode()
        board = re.findall(r'"(/b/[^"/?]+)"', home)[0]
        found["page of two runs"] = server.ask(f"{board}/compare")[2].decode()
    return found


@pytest.mark.parametrize("place", PLACES)
def test_the_note_stands_beside_the_numbers(said: Mapping[str, str], place: str) -> None:
    assert said[""] and said[""] in unescape(said[place])
