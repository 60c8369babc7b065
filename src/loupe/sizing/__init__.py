"""From a GPU to the settings of server and client (docs/sizing.md)."""
