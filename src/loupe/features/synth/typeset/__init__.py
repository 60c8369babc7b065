"""From a page's layout to a PDF and to pixels: typst, its fonts, and PDFium."""
