"""Find the Chromium that the browser tests drive; run as a script, install one where there is none.

`CHROMIUM` names an executable outright. Otherwise: one on PATH, then Playwright's own. As a script
(`python tests/browser/chromium.py`) a missing one is installed, Debian's package when root on Debian, else
Playwright's download, and its path is printed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ASK_PLAYWRIGHT = (
    "from playwright.sync_api import sync_playwright\n"
    "with sync_playwright() as playwright: print(playwright.chromium.executable_path)"
)


class NoChromium(Exception):  # noqa: N818
    """There is no Chromium that starts; says why and what to do."""


def find_chromium() -> str | None:
    """Path of a Chromium executable, or None.

    Raises:
        NoChromium: the environment variable CHROMIUM names something that is no executable.
    """
    if named := os.environ.get("CHROMIUM"):
        if found := shutil.which(named):
            return found
        raise NoChromium(f"CHROMIUM={named} is not an executable; name one, or unset it to have one looked for")
    return next(filter(None, map(shutil.which, NAMES)), None) or _playwrights_own()


def _playwrights_own() -> str | None:
    # In a process of its own: the caller may have Playwright's event loop running already.
    asked = subprocess.run([sys.executable, "-c", ASK_PLAYWRIGHT], capture_output=True, text=True, check=False)
    path = asked.stdout.strip()
    return path if asked.returncode == 0 and path and Path(path).is_file() else None


def install_chromium() -> None:
    """Install one: Debian's package when root on Debian (libraries included), else or failing that Playwright's own."""
    if shutil.which("apt-get") and Path("/etc/debian_version").exists() and os.geteuid() == 0:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]
        if _run(["apt-get", "update"], environment) and _run(install, environment) and shutil.which("chromium"):
            return
    _run([sys.executable, "-m", "playwright", "install", "chromium"], dict(os.environ))


def _run(command: list[str], environment: dict[str, str]) -> bool:
    print("+", *command, file=sys.stderr)
    # Standard output is for the path alone.
    ran = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    return ran.returncode == 0


def ensure_chromium() -> str:
    """Path of a Chromium that starts, installed if need be.

    Raises:
        NoChromium: none is there and none could be installed, or it does not start.
    """
    path = find_chromium()
    if path is None:
        install_chromium()
        path = find_chromium()
    if path is None:
        raise NoChromium("no Chromium here, and installing one did not work (see above)")
    started = subprocess.run(
        [path, "--version", "--no-sandbox"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if started.returncode:
        raise NoChromium(f"{path} does not start: {started.stderr.strip()[-500:]}")
    return path


def main() -> int:
    try:
        print(ensure_chromium())
    except NoChromium as error:
        print(
            f"{error}\nThe browser tests need one: install chromium, or set CHROMIUM=/path/to/it. "
            "To leave these tests out on purpose: make test BROWSER=0",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
