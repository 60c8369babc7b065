"""`loupe embed`: pages, figures and queries of a run as vectors, and how well they retrieve (docs/embedding.md)."""

HOOKS = {
    "commands": {"embed": "loupe.features.embed.command:command"},
    "help": {
        "embed": "Engines and tools: Embed page texts, figures with their captions, and queries; score retrieval.",
    },
}
