"""Near matches of a text in a page, as `fuzzysearch` 0.8.1 finds them, in time linear in the page."""
