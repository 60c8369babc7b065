"""`loupe synth` and the benchmark `synth`: pages generated anew from every seed, with exact truth (docs/synth.md)."""

HOOKS = {
    "benchmarks": {"synth": "loupe.features.synth.benchmark:benchmark"},
    "commands": {"synth": "loupe.features.synth.command:command"},
    "help": {
        "synth": "Your documents: Generate pages with exact truth as a folder that `loupe run DIR` reads.",
    },
    "report_pictures": {"ladders": "loupe.features.synth.pictures:group_pictures"},
    "result_tables": {"ladders": "loupe.features.synth.ladders:ladder_sections"},
}
