"""`loupe compress` and the benchmark `fox`: what pages cost in vision tokens, and how much is read at that compression.

Docs: docs/compress.md, docs/benchmarks/fox.md.
"""

HOOKS = {
    "benchmarks": {"fox": "loupe.features.compress.fox:benchmark"},
    "commands": {"compress": "loupe.features.compress.command:command"},
    "help": {
        "compress": "Engines and tools: Count what pages cost in vision tokens, and measure how much of them is read "
        "at that compression.",
    },
    "published": {"fox": "loupe.features.compress.data"},
    "report_pictures": {"compression": "loupe.features.compress.picture:group_picture"},
    "verify_cases": {"fox": "loupe.features.compress.data"},
}
