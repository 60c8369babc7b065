"""`loupe lint`: formatting faults of answers, and what they cost."""

HOOKS = {
    "commands": {"lint": "loupe.features.lint.command:command"},
    "help": {
        "lint": "Look: Find formatting faults that cost points, page by page, and show the score without them.",
    },
    "result_notes": {"adapters": "loupe.features.lint.suggestions:suggested_adapters"},
}
