"""What single models write instead of a page, made into a page as their own software does; steps of `STEPS`."""
