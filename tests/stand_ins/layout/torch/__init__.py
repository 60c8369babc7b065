"""Stands in for torch 2.15 where PP-DocLayoutV3 is called: tensors are lists."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

__version__ = "2.15.0"
cuda = SimpleNamespace(is_available=lambda: False)


class Tensor(list):
    def to(self, device: str) -> Tensor:
        assert device == "cpu"
        return self

    def tolist(self) -> list[object]:
        return list(self)


def no_grad() -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def tensor(data: list[object], *, device: str) -> Tensor:
    assert device == "cpu"
    return Tensor(data)
