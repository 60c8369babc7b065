"""Tables in what models answer: finding them, and turning every spelling into the HTML that TEDS compares."""
