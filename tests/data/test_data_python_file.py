"""A Python file of the user's runs as its text is now, whatever compiled copy lies beside it."""

from __future__ import annotations

import os
import py_compile
import sys
from pathlib import Path

import pytest

from loupe.data.python_file import load_python_file


def test_a_compiled_copy_of_another_text_is_neither_run_nor_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "words.py"
    file.write_text("WORD = 'old'\n")
    changed = file.stat()
    copy = Path(py_compile.compile(str(file)))
    before = copy.read_bytes()
    file.write_text("WORD = 'new'\n")
    os.utime(file, ns=(changed.st_atime_ns, changed.st_mtime_ns))
    module = load_python_file(file, "words_of_a_test")
    assert (module.WORD, module.__file__) == ("new", str(file))
    assert copy.read_bytes() == before
    copy.unlink()
    load_python_file(file, "words_of_a_test")
    assert not copy.exists()
    del sys.modules["words_of_a_test"]


def test_a_file_that_raises_leaves_no_module(tmp_path: Path) -> None:
    file = tmp_path / "half.py"
    file.write_text("WORD = 1\nraise ValueError('not today')\n")
    with pytest.raises(ValueError, match="not today"):
        load_python_file(file, "half_of_a_test")
    assert "half_of_a_test" not in sys.modules
