"""The API reference: what docs/api.md names, as Sphinx reads it from the docstrings."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

PAGE = Path(__file__).parents[2] / "docs/api.md"


def directives() -> str:
    """Markdown for the end of docs/api.md: a heading for each module, and one directive for each name."""
    text = PAGE.read_text("utf-8")
    parts = ["\n## Reference\n"]
    for module, names in public(text):
        lines = [line for name in names if (line := directive(module, name))]
        if lines:
            parts.append(f"### `{module.__name__}`\n\n```{{eval-rst}}\n" + "\n".join(lines) + "\n```\n")
    return "\n".join(parts)


def public(text: str) -> Iterator[tuple[ModuleType, list[str]]]:
    """Modules that the page names, with the names it gives of each, in its order."""
    words = list(dict.fromkeys(re.findall(r"[A-Za-z_][\w.]*", " ".join(code(text)))))
    seen: set[str] = set()
    for module in modules(words):
        whole = getattr(module, "__all__", ()) if module.__name__ == "loupe" else ()
        asked = [*whole, *(word.removeprefix(f"{module.__name__}.") for word in words)]
        names = [name for name in dict.fromkeys(asked) if documented(module, name) and name not in seen]
        seen.update(names)
        yield module, names


def code(text: str) -> list[str]:
    """What stands between backticks, and the imports of the examples."""
    examples = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    imports = [
        line for example in examples for line in example.splitlines() if re.match(r"from loupe|import loupe", line)
    ]
    return [*re.findall(r"`([^`\n]+)`", prose), *imports]


def modules(words: list[str]) -> Iterator[ModuleType]:
    """`loupe` first, then every module named, or holding a name that is."""
    found = {"loupe"}
    yield importlib.import_module("loupe")
    for word in words:
        for name in (word, word.rpartition(".")[0]):
            if name.startswith("loupe.") and name not in found:
                found.add(name)
                try:
                    yield importlib.import_module(name)
                except ImportError:
                    continue


def documented(module: ModuleType, name: str) -> bool:
    """Whether the name is a class or function of this module, with a docstring."""
    thing = getattr(module, name, None) if name.isidentifier() and not name.startswith("_") else None
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return False
    return thing.__module__.startswith(module.__name__) and bool(inspect.getdoc(thing))


def directive(module: ModuleType, name: str) -> str:
    """The line of Sphinx for one name."""
    thing = getattr(module, name)
    kind = "autofunction"
    if inspect.isclass(thing):
        kind = "autoexception" if issubclass(thing, BaseException) else "autoclass"
    return f".. {kind}:: {module.__name__}.{name}" + ("" if kind == "autofunction" else "\n   :members:\n")
