"""The command `loupe`, and `python -m loupe`: nothing is imported from the working folder, which may be anybody's."""

import _signal  # type: ignore[import-not-found]  # the module `signal` imports much, and this comes first
import os
import sys


def end_at_interrupt(number: int, _: object) -> None:
    """End this process after Ctrl-C: the handler of SIGINT while there is nothing to tidy up, only imports."""
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(128 + number)


def _end_at_interrupts() -> None:
    # What is ignored (Ctrl-C in the background of a script) stays ignored.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, end_at_interrupt)


def main() -> int:
    """Run the command line and return its exit code."""
    _end_at_interrupts()
    from loupe.python_process import leave_working_folder

    leave_working_folder()
    import warnings

    if not sys.warnoptions:  # What libraries remark about hostile data is nothing that a user can act on.
        warnings.simplefilter("ignore")
    from loupe.cli import main as run

    try:
        return run()
    finally:
        _end_at_interrupts()


if __name__ == "__main__":
    sys.exit(main())
