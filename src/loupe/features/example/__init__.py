"""`loupe example`: the worked example of docs/own-documents.md: pages, their ground truth, and made-up models."""

HOOKS = {
    "commands": {"example": "loupe.features.example.command:command"},
    "help": {
        "example": "Your documents: Make the documents of the worked example, and their ground truth "
        "(docs/own-documents.md).",
    },
}
