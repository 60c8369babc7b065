// A page opened as a file may not fetch the pages it found: the results come without excerpts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false
