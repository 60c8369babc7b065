"""`loupe serve`: any engine as an OpenAI-compatible server, also as one that a run starts (`--serve loupe:ENGINE`)."""

HOOKS = {
    "commands": {"serve": "loupe.features.serve.command:command"},
    "help": {"serve": "Engines and tools: Offer an engine as an OpenAI-compatible server on this machine."},
    "server_kinds": {"loupe": "loupe.features.serve"},
}
