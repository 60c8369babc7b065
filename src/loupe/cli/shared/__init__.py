"""Parts that several commands use: options, progress, tables, errors and exit codes."""
