"""`loupe select`: which vision model and which text model know documents of one type, on the user's own documents.

Vision models are asked by image, text models by text, one after the other. Docs: docs/select.md.
"""

HOOKS = {
    "commands": {"select": "loupe.features.select.command:command"},
    "folders": {"selection.json": "loupe.features.select.benchmark:open_selection"},
    "help": {
        "select": "Your documents: Rank vision models and text models on documents of one type.",
    },
    "local_tables": {"select": "loupe.features.select.serving:LOCAL_TABLE"},
    "review_targets": {"select": "loupe.features.select.review_target"},
}
