"""What is asked for the fields of a document: docext's prompt, and that of all other variants.

Protocol: docs/benchmarks/nanonets_kie.md.
"""

from __future__ import annotations

from collections.abc import Sequence


def docext_prompt(fields: Sequence[str]) -> str:
    """The user message of docext @ 0edc8f5; its system message and "Page 1" cannot be sent, a request is one turn."""
    wanted, shape = list(fields), dict.fromkeys(fields, "..")
    return (
        f"Extract the following {wanted} from the above document. If a field is not present, return ''. "
        f"Return the output in a valid JSON format as {shape}."
    )


def json_prompt(fields: Sequence[str]) -> str:
    """A JSON object with these keys and nothing else: what all variants but `docext` ask."""
    return (
        "Extract the following fields from this document image.\n"
        f"Return a JSON object with these keys: {', '.join(fields)}\n"
        "If a field is not found, use an empty string.\n"
        "Output ONLY the JSON, no explanations."
    )
