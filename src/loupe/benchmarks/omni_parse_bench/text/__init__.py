"""What a reader sees of a page's HTML, and the form in which texts and numbers of it are compared."""
