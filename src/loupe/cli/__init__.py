"""The `loupe` command."""
