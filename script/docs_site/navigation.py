"""Where every page stands in the navigation of the website: in the order of docs/README.md."""

import functools
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = "README"
OVERVIEW = "docs/README"
PROJECT = ("CONTRIBUTING", "CHANGELOG", "SECURITY", "tests/oracles/README")


@functools.cache
def pages() -> list[str]:
    """Every page of the website by path, without `.md`."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests/oracles").rglob("*.md")]
    return sorted(file.relative_to(ROOT).with_suffix("").as_posix() for file in files)


def sections() -> list[tuple[str, list[str]]]:
    """Headings with their pages; a page in a folder stands below the page that the folder belongs to."""
    found: list[tuple[str, list[str]]] = [("", [OVERVIEW])]
    for caption, target in listed():
        if caption != found[-1][0]:
            found.append((caption, []))
        if parent(target) is None:
            found[-1][1].append(target)
    return [section for section in found if section[1]] + [("Project", list(PROJECT))]


def below(page: str) -> list[str]:
    """The pages below this one, in the order of docs/README.md, or by name."""
    inside = [each for each in pages() if parent(each) == page]
    order = [target for _caption, target in listed()]
    return sorted(inside, key=lambda each: (order.index(each) if each in order else len(order), each))


@functools.cache
def listed() -> list[tuple[str, str]]:
    """(Heading, page) of every link in docs/README.md, once each."""
    found: dict[str, str] = {}
    caption = ""
    for line in (ROOT / "docs/README.md").read_text("utf-8").splitlines():
        caption = line.removeprefix("## ") if line.startswith("## ") else caption
        for target in re.findall(r"\]\(([\w/-]+)\.md\)", line):
            found.setdefault(f"docs/{target}", caption)
    return [(caption, target) for target, caption in found.items()]


@functools.cache
def parent(page: str) -> str | None:
    """The page of the nearest folder around it that has one, or None.

    `docs/engines` for `docs/engines/vlm`, `docs/engines/profiles` for `docs/engines/profiles/models/chandra@vendor`,
    `docs/protocols/README` for `docs/protocols/fox`.
    """
    around = list(Path(page).parents)
    for folder in around[1:] if page.endswith("/README") else around:
        for candidate in (folder, folder / "README"):
            named = candidate.as_posix()
            if named not in {HOME, OVERVIEW, page} and (ROOT / f"{named}.md").is_file():
                return named
    return None
