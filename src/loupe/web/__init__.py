"""What the pages on this machine have in common: who may ask, the server, pictures of pages, the shared script."""
