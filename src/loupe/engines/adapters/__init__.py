"""Turn what single models write instead of a page into a page as their own software does; steps of `STEPS`."""
