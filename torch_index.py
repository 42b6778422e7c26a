"""Print the options with which `make` lets pip choose a build of PyTorch, and say on standard error what was chosen.

On Linux, PyPI's torch requires CUDA libraries of some 3 GB; PyTorch's own index has a build without them. If pip's
settings name an index or links, they decide.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
_SOURCE = re.compile(r"^\S+\.(?:index-url|extra-index-url|pypi-url|find-links|no-index)=", re.MULTILINE)


def choose_options(*, platform: str, has_gpu: bool, pip_config: str) -> tuple[list[str], str]:
    """The options for `pip install`, and a sentence for the user ("" if nothing is to be said).

    Args:
        platform: As `sys.platform`.
        has_gpu: Whether the machine has an NVIDIA GPU.
        pip_config: The output of `pip config list`, which also lists pip's environment variables.
    """
    if platform != "linux" or _SOURCE.search(pip_config):
        return [], ""
    if has_gpu:
        return [], "NVIDIA GPU found: downloading PyTorch with its CUDA libraries, about 3 GB."
    return ["--extra-index-url", CPU_INDEX], (
        f"No NVIDIA GPU found: downloading PyTorch without CUDA from {CPU_INDEX}, 0.2 GB, and the rest from PyPI, "
        "0.2 to 0.4 GB."
    )


def main() -> None:
    """Look at this machine and at the pip of this Python."""
    has_gpu = shutil.which("nvidia-smi") is not None or any(Path("/dev").glob("nvidia[0-9]*"))
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    pip_config = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    options, sentence = choose_options(platform=sys.platform, has_gpu=has_gpu, pip_config=pip_config)
    if sentence:
        sys.stderr.write(sentence + "\n")
    sys.stdout.write(" ".join(options) + "\n")


if __name__ == "__main__":
    main()
