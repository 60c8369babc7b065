"""Read the text of a page from files that other programs write: PAGE XML, ALTO, hOCR, plain text.

Bytes in, regions of lines out; no file is opened here, nothing is fetched. Rules: docs/protocols/archives.md.
"""
