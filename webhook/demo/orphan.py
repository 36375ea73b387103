"""A server that nobody watches any more: ended with the process that started it, also where that was killed."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_SET_PARENT_DEATH_SIGNAL: Final = 1


def end_with(parent: int) -> None:
    """Let the system end this process in order once the process `parent`, which started it, is gone.

    Of Linux only (prctl(2), PR_SET_PDEATHSIG); elsewhere nothing is done, and a server whose demo was killed stays.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != parent:
            # It was gone before it could be asked for.
            os.kill(os.getpid(), signal.SIGTERM)
