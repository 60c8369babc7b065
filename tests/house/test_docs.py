"""What the documents say holds: links lead somewhere, commands exist with these options, examples run."""

from __future__ import annotations

import functools
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from PIL import Image
from script.make_profile_docs import documents

from loupe.benchmarks.registry import benchmark_ids
from loupe.cli.shared.top import root
from loupe.engines.registry import engine_kinds, profile_names
from tests.data.test_data_layouts import feature, parquet
from tests.support.command_line import loupe, needs_all_features

ROOT = Path(__file__).parents[2]
#: Pages that script/make_profile_docs.py makes, and git ignores: tests/engines/test_profile_docs.py looks at them.
MADE = ROOT / "docs/engines/profiles"
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if MADE not in path.parents)
OTHERS = sorted((ROOT / "tests").rglob("*.md"))
SHELLS = {"", "sh", "bash", "console", "text"}
LARGEST = 1_000_000
WIDEST = 140
#: Folders that exist on one machine only, and words of addresses that belong to a network of somebody's own.
MACHINE = re.compile(r"(?<![\w.$}*~-])/(?:work|home|root|Users|opt|mnt|srv)/\w")
INDEX = re.compile(
    r"https?://[\w.-]*(?:pypi|mirror|registry|artifactory|nexus|proxy|internal)[\w.-]*\.[a-z]+", re.IGNORECASE
)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(params=PAGES, ids=name)
def page(request: pytest.FixtureRequest) -> Path:
    path = request.param
    assert isinstance(path, Path)
    return path


@needs_all_features()
@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=name)
def test_every_link_to_a_file_or_heading_leads_there(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file) if file else page
        if MADE in there.parents and there.relative_to(MADE.parent).as_posix() in made_pages():
            continue
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    assert broken == []


@functools.cache
def made_pages() -> dict[str, str]:
    return documents()


def test_no_line_is_wider_than_an_editor(page: Path) -> None:
    """Tables aside, which Markdown cannot wrap, and what stands in code blocks as a program printed it."""
    text = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), page.read_text("utf-8"), flags=re.DOTALL)
    lines = enumerate(text.splitlines(), 1)
    assert [number for number, line in lines if len(line) > WIDEST and not line.startswith("|")] == []


def test_every_table_has_a_head_and_a_rule(page: Path) -> None:
    """A blank line inside a table makes text of the rows below it."""
    text = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), page.read_text("utf-8"), flags=re.DOTALL)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert [rows for rows in tables if not re.search(r"\A.*\n\|[-: |]+\|\n", rows)] == []


def test_every_extra_is_named_where_installing_is_told() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    told = (ROOT / "docs/install.md").read_text("utf-8")
    assert [extra for extra in extras if f"`{extra}`" not in told and f"[{extra}]" not in told] == []


def anchors(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([\w-]+)"></a>', text))


def test_every_document_of_the_docs_folder_is_listed_in_its_readme() -> None:
    listed = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    others = [path.relative_to(ROOT / "docs").as_posix() for path in PAGES if path.is_relative_to(ROOT / "docs")]
    assert [other for other in others if other != "README.md" and f"]({other})" not in listed] == []


@needs_all_features()
def test_every_loupe_command_in_a_document_exists_with_the_options_given(page: Path) -> None:
    wrong = [f"{line}: {trouble}" for line in examples(page) if (trouble := what_is_wrong(line))]
    assert wrong == []


def examples(page: Path) -> Iterator[str]:
    """Command lines in fences of the shell, and `loupe …` between backticks in running text."""
    text = page.read_text(encoding="utf-8")
    fences = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    for language, block in fences.findall(text):
        if language in SHELLS:
            lines = re.sub(r"\\\n\s*", "", block).splitlines()
            yield from (line.removeprefix("$ ") for line in lines if re.match(r"(\$ )?loupe ", line))
    yield from re.findall(r"`(loupe [a-z-][^`\n]*)`", fences.sub("", text))


def what_is_wrong(line: str) -> str:
    """Why the real command line would refuse this one; file names and placeholders are not looked at."""
    line = re.split(r" {2,}(?![ #])|[|;>&]| …| \.\.\.", line.split(" #")[0])[0]
    words = shlex.split(line)[1:]
    command: click.Command = root
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        usual = getattr(command, "usual", "")
        if found is None and usual:
            found, words = command.get_command(click.Context(command), usual), [usual, *words]
        if found is None:
            return f"no command {words[0]!r}"
        command, words = found, words[1:]
    try:
        values, _rest, _order = command.make_parser(click.Context(command)).parse_args(list(words))
    except click.UsageError as error:
        return error.format_message()
    given = values.get("engine")
    engines = given if isinstance(given, list) else []
    return next((f"no engine {each!r}" for each in engines if not is_engine(each)), "")


def is_engine(word: str) -> bool:
    """Whether this names a built-in engine or kind, a file, or a place to put a name (`NAME`, `my-model`)."""
    known = {*profile_names(), *engine_kinds()}
    return word in known or word.partition(":")[0] in known or not re.fullmatch(r"[a-z_]+", word)


def test_a_wrong_command_option_or_engine_in_a_document_is_found() -> None:
    lines = ["loupe rnu ./pages", "loupe run ./pages --no-such", "loupe run ./pages -e rapidorc", "loupe bench lsit"]
    assert [bool(what_is_wrong(line)) for line in lines] == [True] * 4
    right = [
        "loupe run ./pages -e rapidocr --limit 3  # some",
        "loupe engine list",
        "loupe --version",
        "loupe report …",
    ]
    assert [what_is_wrong(line) for line in right] == [""] * 4


@needs_all_features()
def test_the_readme_names_only_benchmarks_that_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = {
        found.partition("@")[0] for found in re.findall(r"loupe (?:run|infer|bench show) ([a-z]\w+(?:@\S+)?)", text)
    }
    assert "sample_pages" in named
    assert named <= set(benchmark_ids())


def test_the_benchmark_and_the_engine_of_contributing_run_as_they_stand(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for file, code in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        (tmp_path / file).write_text(code, encoding="utf-8")
    line = {"id": "one", "image": "one.png", "text": f"what stands on {tmp_path / 'one.png'}"}
    (tmp_path / "test.jsonl").write_text(json.dumps(line), encoding="utf-8")
    Image.new("RGB", (40, 20), "white").save(tmp_path / "one.png")
    words = ["run", "./lines.py", "--data", str(tmp_path), "-o", "split=test", "-e", "python:reader.py:read"]
    done = loupe(*words, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(next(tmp_path.glob("runs/*/lines/result.json")).read_text(encoding="utf-8"))
    assert result["measures"]["cer"]["value"] == 0


def test_the_question_set_of_contributing_runs_as_it_stands(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n# signs_qa\.py\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(code.splitlines()) < 60
    (tmp_path / "signs_qa.py").write_text(code, encoding="utf-8")
    (tmp_path / "reader.py").write_text("def read(page):\n    return 'Halt ' if 'Which?' in page.prompt else ''\n")
    columns: dict[str, list[object]] = {"question_id": [1, 2], "question": ["Which?", "What?"], "sign_id": ["a", "a"]}
    columns |= {"language": ["de", "fr"], "answers": [["Stop", "halt"], ["x"]], "image": feature(2)}
    (tmp_path / "test-00000-of-00001.parquet").write_bytes(parquet(**columns))
    done = loupe("run", "./signs_qa.py", "--data", str(tmp_path), "-e", "python:reader.py:read", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(next(tmp_path.glob("runs/*/signs_qa/result.json")).read_text(encoding="utf-8"))
    assert result["measures"]["exact_match"]["value"] == 0.5 and set(result["slices"]["language"]) == {"de", "fr"}


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    git = shutil.which("git")
    listing = git and subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if not listing or listing.returncode != 0:
        pytest.skip("SKIPPED: this is no git checkout, so what is tracked cannot be looked at")
    return [path for line in listing.stdout.split("\0") if line and (path := ROOT / line).is_file()]


def test_no_tracked_file_is_over_a_megabyte(tracked: list[Path]) -> None:
    assert [name(path) for path in tracked if path.stat().st_size > LARGEST] == []


def test_no_tracked_file_names_a_folder_of_one_machine_or_a_package_index(tracked: list[Path]) -> None:
    found = []
    for path in tracked:
        text = path.read_bytes().decode("utf-8", errors="replace") if path != Path(__file__) else ""
        if "\0" not in text:
            found += [f"{name(path)}: {each.group()}" for rule in (MACHINE, INDEX) for each in rule.finditer(text)]
    assert found == []


@needs_all_features()
def test_the_places_that_the_design_names_exist() -> None:
    """Every path in the table "Where to look" lies below src/loupe."""
    page = (ROOT / "docs/design.md").read_text("utf-8")
    rows = page.partition("## Where to look")[2].partition("\n## ")[0].splitlines()
    places = [place for row in rows for place in re.findall(r"`([a-z_0-9]+/[a-z_0-9/.]*)`", row)]
    assert len(places) >= 15
    assert [place for place in places if not (ROOT / "src/loupe" / place).exists()] == []
