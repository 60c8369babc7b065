"""Support for `pubtabnet` and `teds_test`: the published layouts, and how an answer to a table image is scored."""
