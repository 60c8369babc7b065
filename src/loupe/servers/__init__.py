"""Model servers that Loupe starts, watches, starts again and stops (`--serve`); docs/servers.md."""
