"""What pages cost in vision tokens, and how much of them an engine still reads (`loupe compress`)."""
