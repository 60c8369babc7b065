"""How many tokens a text has, where nobody counted them: DeepSeek's own rule of thumb.

Source: platform.deepseek.com/api-docs/quick_start/token_usage: an English character is about 0.3 tokens, a Chinese one
about 0.6. Counts of the model's tokenizer (a server's, or `len` of Fox) come first; an estimate is always called one.
"""

from __future__ import annotations

import re

_PER_CHARACTER = 0.3
_PER_CHINESE_CHARACTER = 0.6
_CHINESE = re.compile("[\u3400-\u9fff]")


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has; 0 for an empty one.

    >>> estimated_tokens("Compression of a page"), estimated_tokens("光学压缩")
    (6, 2)
    """
    chinese = len(_CHINESE.findall(text))
    return round(_PER_CHINESE_CHARACTER * chinese + _PER_CHARACTER * (len(text) - chinese))
