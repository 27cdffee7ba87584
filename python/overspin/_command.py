"""The command `overspin`, as the package installs it."""

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from overspin._overspin import main as command


def main() -> NoReturn:
    """Runs the command with the arguments of this process, and ends the process with its exit code."""
    # `overspin exec` looks for its library beside the command, which is Python here.
    library = Path(__file__).with_name("liboverspin_preload.so")
    if library.is_file():
        os.environ.setdefault("OVERSPIN_PRELOAD", str(library))
    # The command handles Ctrl-C itself: the first keeps finished results, the second ends it at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(command(["overspin", *sys.argv[1:]]))
