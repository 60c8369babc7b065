"""`loupe size`: from a GPU to the settings of server and client (docs/sizing.md), also for a server of `--serve`."""

HOOKS = {
    "commands": {"size": "loupe.features.size.command:command"},
    "help": {
        "size": "Engines and tools: Plan server and client for a GPU: what fits, how much at once, "
        "and the command line.",
    },
    "server_plans": {"size": "loupe.features.size.server_plan:plan_server"},
}
