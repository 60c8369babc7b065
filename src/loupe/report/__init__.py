"""Pictures of results: tables and self-contained HTML."""
