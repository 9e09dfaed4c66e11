"""Run the `warpwave` command of the wheel: `python -m warpwave`, or the script of that name. `import` is Python and runs in this process."""
from __future__ import annotations

import os
import sys

from ._library import command_path


def main() -> None:
    """Replace this process with the command."""
    if sys.argv[1:2] == ["import"]:
        from ._import import main as import_main
        sys.exit(import_main(sys.argv[2:]))
    command = command_path()
    if command is None or os.path.realpath(command) == os.path.realpath(sys.argv[0]):
        sys.exit("warpwave: the command is not in this package; install the wheel, or set WARPWAVE_COMMAND to its path")
    sys.stdout.flush()
    os.execv(command, ["warpwave", *sys.argv[1:]])


if __name__ == "__main__":
    main()
