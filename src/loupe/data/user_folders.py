"""The user's own folders: settings in ~/.config/loupe, a key in ~/.local/state/loupe, and a cache.

The cache has what can be fetched or made again.

A container may run as a user whose HOME belongs to somebody else. A folder that may not be read counts as absent, as
the XDG Base Directory Specification asks ("Referencing this specification"); no command stops for it. The cache is then
in a private folder for temporary files.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from loupe.errors import cannot_write


def config_folder(name: str = "") -> Path:
    """Return `~/.config/loupe`, or the folder of this name in it."""
    return _usable(_own(".config"), name)


def why_not_in_config(name: str) -> str:
    """Return which folder may not be read, so that a stand-in is used for `config_folder(name)`; "" if it is not."""
    own = _own(".config")
    return next((f"{folder} may not be read" for folder in (own, own / name) if _is_closed(folder)), "")


def state_folder() -> Path:
    """Return `loupe` in $XDG_STATE_HOME, else in ~/.local/state: what no one sets or can make again."""
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    return named / "loupe" if named.is_absolute() else _own(".local/state")


def config_files(pattern: str) -> list[Path]:
    """Return the user's own settings files that match, sorted, without those that may not be read."""
    folder, _, name = pattern.rpartition("/")
    return [path for path in sorted(config_folder(folder).glob(name)) if os.access(path, os.R_OK)]


def cache_folder(name: str = "", *, to_write: bool = False) -> Path:
    """Return `loupe` in $XDG_CACHE_HOME, else in ~/.cache, or the folder of this name in it.

    With `to_write`, a cache that may only be read is replaced by a folder for temporary files.
    """
    folder = _usable(_cache(), name)
    return _stand_in() / name if to_write and why_not_kept() else folder


def why_not_kept() -> str:
    """Return why nothing new can be kept in the cache, "" if it can. The work goes on without, only slower."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        return cannot_write(folder, error).message
    return ""


def unreadable() -> str:
    """Return one line about the folders that may not be read and what is used instead, "" if there are none."""
    effects = {
        _own(".config"): "your own settings are not used",
        _cache(): f"the cache is in {_stand_in()} (XDG_CACHE_HOME names another place)",
    }
    closed = [folder for folder in effects if _is_closed(folder)]
    why = f"{' and '.join(map(str, closed))} may not be read: {' and '.join(effects[each] for each in closed)}"
    return why if closed else ""


def _own(name: str) -> Path:
    # Not Path.home(), which raises for a user who has none. A relative one may be anybody's folder.
    home = Path(os.path.expanduser("~"))  # noqa: PTH111
    return (home if home.is_absolute() else Path(os.devnull)) / name / "loupe"


def _cache() -> Path:
    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named) / "loupe" if named else _own(".cache")


def _usable(folder: Path, name: str) -> Path:
    """The folder of this name in `folder`, or its stand-in if either may not be read."""
    return _stand_in() / name if _is_closed(folder) or _is_closed(folder / name) else folder / name


def _is_closed(folder: Path) -> bool:
    """True if the folder is there but may not be searched, or if one on the way to it may not."""
    try:
        with os.scandir(folder):
            # Names may be listed where nothing behind them may be opened.
            os.stat(f"{folder}/.")  # noqa: PTH116  pathlib drops the dot
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return False


def _stand_in() -> Path:
    """A private folder of this user that outlives the process; a place where nothing can be, if there is none."""
    try:
        folder = Path(tempfile.gettempdir()) / f"loupe-of-user-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
    except OSError:
        return Path(os.devnull) / "loupe"
    # Anybody may have made a folder of this name there.
    is_private = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o077
    return folder if is_private else Path(os.devnull) / "loupe"
