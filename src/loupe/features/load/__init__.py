"""`loupe load`: throughput and latency of an engine by requests in flight."""

HOOKS = {
    "commands": {"load": "loupe.features.load.command:command"},
    "help": {
        "load": "Engines and tools: Measure throughput and latency of an engine by requests in flight.",
    },
}
