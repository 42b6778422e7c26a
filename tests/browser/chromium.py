"""Find the Chromium for the browser tests; as a script, install one if there is none, and print its path."""

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


def find_chromium() -> str | None:
    """The path of the Chromium in CHROMIUM, of one on PATH, or of Playwright's own; None if there is none."""
    if named := os.environ.get("CHROMIUM"):
        return shutil.which(named)
    return next(filter(None, map(shutil.which, NAMES)), None) or _playwrights_own()


def _playwrights_own() -> str | None:
    # In a separate process, since Playwright's event loop may already be running in the caller.
    answer = subprocess.run([sys.executable, "-c", ASK_PLAYWRIGHT], capture_output=True, text=True, check=False)
    path = answer.stdout.strip()
    return path if answer.returncode == 0 and path and Path(path).is_file() else None


def install_packages(*names: str) -> bool:
    """Install Debian packages, as root on Debian; return whether it succeeded."""
    if shutil.which("apt-get") is None or not Path("/etc/debian_version").exists() or os.geteuid() != 0:
        return False
    return run("apt-get", "update") and run("apt-get", "install", "--yes", "--no-install-recommends", *names)


def run(*command: str) -> bool:
    """Run a command and return whether it succeeded; its output goes to standard error, as standard output is for the
    path."""
    print("+", *command, file=sys.stderr)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    return not subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
    ).returncode


def ensure_chromium() -> str:
    """The path of a working Chromium, installed if necessary; raises SystemExit if there is none."""
    if find_chromium() is None and not os.environ.get("CHROMIUM") and not install_packages("chromium"):
        run(sys.executable, "-m", "playwright", "install", "chromium")
    path = find_chromium()
    if path is None or not run(path, "--version", "--no-sandbox"):
        sys.exit(
            f"{path or os.environ.get('CHROMIUM') or 'Chromium'} is not there or does not start. The browser tests "
            "need it: install chromium, or set CHROMIUM=/path/to/it. To leave these tests out: make test BROWSER=0"
        )
    return path


if __name__ == "__main__":
    print(ensure_chromium())
