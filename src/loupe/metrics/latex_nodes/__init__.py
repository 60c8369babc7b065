"""LaTeX as a tree of nodes, read as pylatexenc 2.10 reads it in its tolerant mode: nothing is an error of syntax.

Two benchmarks and a profile of CDM pin 2.10, OmniDocBench 1.5 pins 3.0a30, and one environment holds only one of them.
"""

from loupe.metrics.latex_nodes.damage import is_damaged
from loupe.metrics.latex_nodes.nodes import Chars, Comment, Environment, Group, Macro, Math, Node, Special
from loupe.metrics.latex_nodes.reader import BeyondLimitsError, UnreadableLatexError, read_latex

__all__ = [
    "BeyondLimitsError",
    "Chars",
    "Comment",
    "Environment",
    "Group",
    "Macro",
    "Math",
    "Node",
    "Special",
    "UnreadableLatexError",
    "is_damaged",
    "read_latex",
]
