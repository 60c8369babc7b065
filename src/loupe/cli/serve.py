"""`loupe serve`: any engine as an OpenAI-compatible server on this machine."""

from __future__ import annotations

import click


@click.command("serve")
@click.argument("engine")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Address to bind. Default: this machine only.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, metavar="N", help="Port; 0 picks a free one.")
@click.option("--api-key", metavar="KEY", help="Ask clients for this key. Or the environment: LOUPE_API_KEY.")
def command(engine: str, host: str, port: int, api_key: str | None) -> None:
    """Offer an engine as an OpenAI-compatible server on this machine."""
