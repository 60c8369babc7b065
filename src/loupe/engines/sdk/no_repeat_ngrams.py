"""The n-gram rule of DeepSeek-OCR: no run of tokens may come a second time within a window, tags of cells excepted.

Source: `process/ngram_norepeat.py` of deepseek-ai/DeepSeek-OCR @ e4ac34e and vLLM's `NGramPerReqLogitsProcessor`.
Tokens are those of the answer alone, without the prompt.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def banned_tokens(tokens: Sequence[int], *, size: int, window: int, allowed: Collection[int] = ()) -> set[int]:
    """Tokens that must not come next: each would end a run of `size` tokens which began among the last `window`.

    `size` is at least 2. `allowed` may always come.

    >>> banned_tokens([7, 8, 9, 7, 8], size=3, window=90)
    {9}
    """
    if len(tokens) < size:
        return set()
    opening = list(tokens[-(size - 1) :])
    starts = range(max(0, len(tokens) - window), len(tokens) - size + 1)
    found = {tokens[start + size - 1] for start in starts if list(tokens[start : start + size - 1]) == opening}
    return found - set(allowed)
