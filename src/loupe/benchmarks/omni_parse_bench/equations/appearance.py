r"""Whether an equation stands in a page: as symbols in a row, or as plain text where that loses nothing.

Protocol: docs/protocols/omni_parse_bench.md#latex.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from loupe.benchmarks.omni_parse_bench.equations.mathml_symbols import Symbols
from loupe.benchmarks.omni_parse_bench.text.folding import squeeze

#: What may be missing at the border between two equations of a page.
_PUNCTUATION = frozenset(",;.")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
#: Commands for signs that a text can hold.
_SIGNS = """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi varpi rho varrho
    sigma varsigma tau upsilon phi varphi chi psi omega
    Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega
    pm mp times cdot div ast star circ bullet le leq ge geq neq ne approx sim simeq equiv propto ll gg
    in notin subset subseteq supset supseteq cup cap infty partial nabla prime degree
    ldots cdots dots to rightarrow leftarrow leftrightarrow Rightarrow Leftarrow
    mid left right big Big bigl bigr Bigl Bigr quad qquad mathrm text textrm operatorname
"""
_PLAIN_COMMANDS = frozenset(_SIGNS.split())
_NESTED_SCRIPT = re.compile(r"[\^_]\{[^{}]*[\\{^_]")
_MATH_SIGN = re.compile(r"[\\^_=<>+±×·−]")


def contains_in_row(wanted: Symbols, equations: Sequence[Symbols]) -> bool:
    """Whether the symbols follow one another in the page's, of which equations may end anywhere between them.

    A comma, semicolon or full stop may stand for such a border. One step for each symbol: bit n says that the first n
    symbols wanted end here.
    """
    places: dict[str, int] = {}
    for number, symbol in enumerate(wanted):
        places[symbol] = places.get(symbol, 0) | 1 << number
    punctuation = sum(places.get(sign, 0) for sign in _PUNCTUATION)
    everything, state = 1 << len(wanted), 1
    for number, symbols in enumerate(equations):
        if number:  # a border
            state |= (state & punctuation) << 1
        for symbol in symbols:
            if state & everything:
                return True
            state = (state & places.get(symbol, 0)) << 1 | 1
    return bool(state & everything)


def is_plain(latex: str) -> bool:
    """Whether a text shows the equation without loss: symbols and plain scripts, and more than a word or a number."""
    if any(command not in _PLAIN_COMMANDS for command in _COMMAND.findall(latex)) or _NESTED_SCRIPT.search(latex):
        return False
    return bool(_MATH_SIGN.search(latex)) and len(squeeze(f"${latex}$")) >= 2
