"""Find the HAProxy that the tests of deploy/ start. As a script: install one if there is none, and print its path."""

import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # when run as a script

from tests.browser.chromium import install_packages

PLACES = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin"])


def find_haproxy() -> str | None:
    """Path of the HAProxy named by $HAPROXY, or else of an installed one; None if there is none."""
    return shutil.which(os.environ.get("HAPROXY") or "haproxy", path=PLACES)


def main() -> None:
    """Print the path; SystemExit if there is none."""
    if find_haproxy() is None and not os.environ.get("HAPROXY"):
        install_packages("haproxy")
    path = find_haproxy()
    if path is None:
        sys.exit(
            "There is no HAProxy, which the tests of deploy/ need: install haproxy, or set HAPROXY=/path/to/it. To "
            "leave these tests out: make test-all PROXY=0"
        )
    print(path)


if __name__ == "__main__":
    main()
