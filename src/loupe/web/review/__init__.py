"""Going through ground truth beside the page, in a browser on this machine (`loupe review`)."""
