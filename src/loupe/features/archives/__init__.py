"""Score what archives have: folders of PAGE XML, ALTO, hOCR or text against each other, under named profiles.

Docs: docs/archives.md.
"""

HOOKS = {
    "paths": {"transcripts": "loupe.features.archives.benchmark:open_transcripts"},
    "result_tables": {"confusions": "loupe.features.archives.tables:confusion_tables"},
}
