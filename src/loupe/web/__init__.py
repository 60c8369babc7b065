"""Pages on this machine, for what they have in common: the guard, the server, pictures of pages, the shared script."""
