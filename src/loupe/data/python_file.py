"""A Python file of the user's as a module: what runs is the text that stands in the file now.

Python's own loader takes a compiled copy from `__pycache__` if size and second of the last change agree with the
file's. A digest of the text would then vouch for code that it was not made from: an older one after a quick edit, or
one that somebody laid there.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


class _TextLoader(SourceFileLoader):
    """Compiles the file's text each time; reads and writes no compiled copy."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def load_python_file(path: Path, name: str) -> ModuleType:
    """The file executed as the module `name`, which `sys.modules` knows unless the file raises.

    Raises what the file raises.
    """
    loader = _TextLoader(name, str(path.absolute()))
    spec = importlib.util.spec_from_file_location(name, path.absolute(), loader=loader)
    assert spec is not None, "a loader that is given always has a spec"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # what it defines can then be sent to other processes
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
