"""`python -m loupe` is the same as `loupe`."""

from loupe.cli import main

if __name__ == "__main__":
    main()
