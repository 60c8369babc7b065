"""Keep the places that Python processes of ours import from: the places of the installation, never the working folder.

The working folder may be somebody else's, and a file `multiprocessing.py` in it would be imported in place of Python's
own. Only `sys` and `os` are imported here: they are part of the interpreter, so this can run before anything else.
"""

import os
import sys

PATH_VARIABLE = "PYTHONPATH"
_BOOT = "import sys; sys.path[:] = sys.argv[1:]; from {module} import main; main({arguments})"


def leave_working_folder() -> None:
    """Take the working folder off this process's own path."""
    sys.path[:] = search_path()


def search_path() -> list[str]:
    """`sys.path` without the working folder, and without what PYTHONPATH names relative to it.

    An entry behind the standard library is kept: it stands for a package that the user has installed (`pip install
    -e .`), and can hide no module of Python's.
    """
    library = os.path.dirname(os.__file__)
    installed = sys.path.index(library) if library in sys.path else len(sys.path)
    own = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
    here = _relative_places() - {own}
    return [
        entry
        for place, entry in enumerate(sys.path)
        if os.path.isabs(entry) and (place > installed or os.path.realpath(entry) not in here)
    ]


def python_command(module: str, *arguments: int) -> list[str]:
    """The command line that calls `main` of a module of ours in a new process, with the same `search_path`.

    -P keeps the working folder off the path until ours is set, -E what PYTHONPATH says. -E drops
    PYTHONDONTWRITEBYTECODE, too, so -B repeats it.
    """
    boot = _BOOT.format(module=module, arguments=", ".join(map(str, arguments)))
    written = ["-B"] if sys.dont_write_bytecode else []
    return [sys.executable, "-E", "-P", *written, "-c", boot, *search_path()]


def python_path(environment: dict[str, str]) -> str:
    """PYTHONPATH without the working folder and what is named relative to it."""
    entries = environment.get(PATH_VARIABLE, "").split(os.pathsep)
    here = _relative_places()
    return os.pathsep.join(each for each in entries if os.path.isabs(each) and os.path.realpath(each) not in here)


def _relative_places() -> set[str]:
    """The working folder, and the folders in it that PYTHONPATH names without saying where they are."""
    named = os.environ.get(PATH_VARIABLE, "").split(os.pathsep)
    try:
        return {os.path.realpath(each) for each in ("", *named) if not os.path.isabs(each)}
    except FileNotFoundError:  # a working folder that was deleted holds nothing to import
        return set()
