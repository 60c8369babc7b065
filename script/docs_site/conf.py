"""Sphinx builds the website from the Markdown pages as they are; `script/docs` runs it."""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import navigation
import reference
from docutils import nodes
from docutils.transforms import Transform
from sphinx.application import Sphinx

project = "Loupe"
author = "The Loupe authors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = navigation.HOME
include_patterns = [f"{page}.md" for page in navigation.pages()]
myst_heading_anchors = 6
default_role = "code"
smartquotes = False
add_module_names = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
# Examples leave out what does not matter with an ellipsis, which is no shell or JSON.
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "furo"
html_title = "Loupe"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js", "profiles.js"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

#: Opens the folder at the README.
FIRST_PAGE = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Loupe</title>
<meta http-equiv="refresh" content="0; url={root_doc}.html"><a href="{root_doc}.html">Loupe</a>
"""


def setup(app: Sphinx) -> None:
    """Pages that a code host shows as they are need a navigation, both pictures, and their anchors here."""
    app.connect("source-read", complete)
    app.connect("autodoc-process-docstring", plain)
    app.add_transform(KnowAnchors)
    app.connect("build-finished", add_files)


def complete(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add the navigation, the reference, and pictures that follow the switch between light and dark."""
    text = re.sub(r"<picture>.*?</picture>", both_pictures, source[0], flags=re.DOTALL)
    if page == "docs/api":
        text += reference.directives()
    trees = navigation.sections() if page == navigation.HOME else [("", navigation.below(page))]
    source[0] = text + "".join(toctree(caption, below) for caption, below in trees if below)


def toctree(caption: str, pages: list[str]) -> str:
    """A table of contents for the sidebar alone."""
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["\n", "```{toctree}", *options, "", *(f"/{page}" for page in pages), "```", ""])


def both_pictures(picture: re.Match[str]) -> str:
    """`<picture>` follows the system; two images with the theme's classes follow its switch, too."""
    dark = re.search(r'srcset="([^"]+)"', picture[0])
    light = re.search(r"<img [^>]*>", picture[0])
    source = light and re.search(r'src="([^"]+)"', light[0])
    if not (dark and light and source):
        raise ValueError(f"a picture without an image for light and dark: {picture[0]}")
    first = light[0].replace("<img ", '<img class="only-light" ')
    second = light[0].replace("<img ", '<img class="only-dark" ').replace(source[1], dark[1])
    return f"{first}\n{second}"


def plain(_app: Sphinx, _kind: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with backticks: nothing else in them is markup."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", ":", ".. ")):
            parts = re.split(r"(`[^`]*`)", line)
            parts[::2] = [re.sub(r"[*|\\]|(?<=\w)_(?!\w)", r"\\\g<0>", part) for part in parts[::2]]
            parts[1::2] = [f"`{part}`" for part in parts[1::2]]
            lines[number] = "".join(parts)


class KnowAnchors(Transform):
    """Let links find `<a id="…"></a>`, as they do on a code host."""

    default_priority = 800

    def apply(self, **_options: Any) -> None:
        """Add the anchors to those of the headings, just before links are resolved."""
        known = self.document.myst_slugs if hasattr(self.document, "myst_slugs") else {}
        for raw in self.document.findall(nodes.raw):
            for anchor in re.findall(r'<a id="([\w-]+)">', raw.astext()):
                known[anchor] = (raw.line, anchor, anchor)
        env = self.document.settings.env
        env.metadata[env.docname]["myst_slugs"] = self.document.myst_slugs = known


def add_files(app: Sphinx, error: Exception | None) -> None:
    """Copy the pictures, and let the folder open at its first page."""
    if error is None:
        shutil.copytree(navigation.ROOT / "docs/pictures", app.outdir / "docs/pictures", dirs_exist_ok=True)
        (app.outdir / "index.html").write_text(FIRST_PAGE, "utf-8")
