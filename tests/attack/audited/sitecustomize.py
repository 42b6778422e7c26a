"""Write a line to the file that the environment variable WRITES names for whatever this process does to other files.

Python imports this module at the start of a process if its folder is on PYTHONPATH.
"""

import os
import sys
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.setxattr", "os.symlink",
    "os.truncate", "os.utime", "sqlite3.connect",
    "os.exec", "os.fork", "os.posix_spawn", "os.system", "subprocess.Popen",
}  # fmt: skip
"""The audit events of changes to files and of new processes, in which nothing would be seen."""
_out = os.open(os.environ["WRITES"], os.O_WRONLY | os.O_APPEND)


def _note(event: str, args: tuple[Any, ...]) -> None:
    if event == "open":
        path, mode, flags = args
        is_writing = bool(set(mode) & set("wax+")) if isinstance(mode, str) else bool((flags or 0) & WRITING)
        if path == os.devnull or not is_writing:
            return
    elif event not in CHANGES:
        return
    os.write(_out, f"{event} {args!r:.300}\n".encode())


os.write(_out, b"audited\n")
sys.addaudithook(_note)
