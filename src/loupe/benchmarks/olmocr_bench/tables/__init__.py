"""Tables of answers as grids of cells."""
