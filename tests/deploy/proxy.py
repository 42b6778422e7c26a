"""Find the HAProxy that the tests of deploy/ start; run as a script, install one where there is none.

`HAPROXY` names an executable outright, otherwise one on PATH is taken. As a script (`python tests/deploy/proxy.py`) a
missing one is installed as Debian's package, where we are root on Debian, and its path is printed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PLACES = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin"])


def find_haproxy() -> str | None:
    """Path of an HAProxy executable, or None."""
    return shutil.which(os.environ.get("HAPROXY") or "haproxy", path=PLACES)


def install_haproxy() -> None:
    """Debian's package, when root on Debian."""
    if shutil.which("apt-get") is None or not Path("/etc/debian_version").exists() or os.geteuid() != 0:
        return
    for command in (["update"], ["install", "--yes", "--no-install-recommends", "haproxy"]):
        print("+ apt-get", *command, file=sys.stderr)
        ran = subprocess.run(
            ["apt-get", *command],
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,  # standard output is for the path alone
            check=False,
        )
        if ran.returncode:
            return


def main() -> int:
    if find_haproxy() is None and not os.environ.get("HAPROXY"):
        install_haproxy()
    found = find_haproxy()
    if found is None:
        print(
            "no HAProxy here, which the tests of deploy/ need: install haproxy, or set HAPROXY=/path/to/it. To leave "
            "these tests out on purpose: make test-all PROXY=0",
            file=sys.stderr,
        )
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
