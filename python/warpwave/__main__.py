"""Run the `warpwave` command of the wheel: `python -m warpwave`, or the script of that name. `import` is Python and runs in this process."""
from __future__ import annotations

import os
import shutil
import sys

from ._library import PACKAGE


def main() -> None:
    """Replace this process with the command."""
    if sys.argv[1:2] == ["import"]:
        from ._import import main as import_main
        sys.exit(import_main(sys.argv[2:]))
    inside = PACKAGE / "bin" / "warpwave"
    told = os.environ.get("WARPWAVE_COMMAND", "")
    command = told or (str(inside) if inside.is_file() else "")
    if not command:
        found = shutil.which("warpwave")
        if found is None or os.path.realpath(found) == os.path.realpath(sys.argv[0]):
            sys.exit("warpwave: the command is not in this package; install the wheel, or set WARPWAVE_COMMAND to its path")
        command = found
    sys.stdout.flush()
    os.execv(command, ["warpwave", *sys.argv[1:]])


if __name__ == "__main__":
    main()
