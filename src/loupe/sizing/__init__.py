"""From a GPU to the settings of server and client (protocols/sizing.md)."""
