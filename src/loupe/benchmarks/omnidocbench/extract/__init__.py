"""From a page's Markdown to items: tables, formulas, paragraphs."""
