"""Tables of a page, and what stands above, beside and around a cell."""
