"""Completion of ``kubectl volcano-py ...``: kubectl asks the program ``kubectl_complete-volcano_py``.

It prints one candidate a line and then a directive; 4 means that files are no candidates (cobra's
``ShellCompDirectiveNoFileComp``).
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from typing import Final

from volcano_py.cli.vcctl.main import app

NO_FILES: Final = ":4"
PROGRAM: Final = "vcctl-py"


def main() -> None:
    """Entry point; the words typed so far are the arguments, the last one may be unfinished or empty."""
    words = sys.argv[1:]
    os.environ["_VCCTL_PY_COMPLETE"] = "complete_bash"
    os.environ["COMP_WORDS"] = shlex.join([PROGRAM, *words])
    os.environ["COMP_CWORD"] = str(len(words))
    with suppress(SystemExit):
        app(prog_name=PROGRAM)
    sys.stdout.write(f"{NO_FILES}\n")
