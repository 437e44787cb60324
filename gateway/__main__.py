"""The command `signoff`, also as `python -m gateway`.

Owns the few steps that must come before any other import: the working folder goes last on the import path,
and strangers of our names are refused. What the commands are is `gateway.cli`'s business.
"""

import sys
from pathlib import Path

from gateway.import_path import ForeignPackageError, refuse_strangers, working_folder_last

HOME = Path(__file__).resolve().parent.parent
CANNOT_START = 2


def main() -> None:
    working_folder = _working_folder()
    sys.path[:] = working_folder_last(sys.path, working_folder)
    try:
        refuse_strangers(HOME, working_folder)
    except ForeignPackageError as error:
        sys.stderr.write(f"signoff: {error}\n")
        sys.exit(CANNOT_START)

    # Only now: the command line imports `agent` and `handlers`, and they must be ours.
    from gateway.cli import cli  # noqa: PLC0415

    cli(prog_name="signoff")


def _working_folder() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:  # the folder was removed under the shell
        return None


if __name__ == "__main__":
    main()
