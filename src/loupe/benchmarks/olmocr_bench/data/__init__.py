"""The folder of olmOCR-Bench: tests, pages, prompts, and files of answers."""
