"""The command `loupe`, and `python -m loupe`: nothing is imported from the working folder, which may be anybody's."""

import sys

from loupe.data.python_process import leave_working_folder


def main() -> int:
    """Run the command line and return its exit code."""
    leave_working_folder()
    from loupe.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
