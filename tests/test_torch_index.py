import os
import subprocess
import sys
from pathlib import Path

import pytest

from torch_index import CPU_INDEX, choose_options

SCRIPT = Path(__file__).resolve().parent.parent / "torch_index.py"


def test_without_a_gpu_linux_gets_the_build_without_cuda_and_is_told_so() -> None:
    harmless = ":env:.config-file='pip.conf'\nglobal.cert='ca.crt'\ninstall.timeout='60'\n"
    options, sentence = choose_options(platform="linux", has_gpu=False, pip_config=harmless)
    assert options == ["--extra-index-url", CPU_INDEX]
    assert CPU_INDEX in sentence and "GB" in sentence


@pytest.mark.parametrize("platform, has_gpu", [("linux", True), ("darwin", False), ("win32", False)])
def test_with_a_gpu_and_on_other_systems_torch_comes_from_pypi(platform: str, has_gpu: bool) -> None:
    assert choose_options(platform=platform, has_gpu=has_gpu, pip_config="")[0] == []


@pytest.mark.parametrize(
    "variables, file",
    [
        ({"PIP_INDEX_URL": "https://example.org/simple"}, ""),
        ({"PIP_FIND_LINKS": "wheels"}, ""),
        ({"PIP_NO_INDEX": "1"}, ""),
        ({}, "[install]\nextra-index-url =\n  https://example.org/a\n  https://example.org/b\n"),
        ({}, "[global]\nindex_url = https://example.org/simple\n"),
    ],
)
def test_pips_own_index_or_links_decide(variables: dict[str, str], file: str, tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text(file, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environment |= {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")} | variables
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert choose_options(platform="linux", has_gpu=False, pip_config=listed) == ([], ""), listed


def test_the_script_prints_options_for_pip_and_nothing_else() -> None:
    environment = {**os.environ, "PIP_FIND_LINKS": "wheels"}
    ran = subprocess.run([sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, check=True)
    assert not ran.stdout.strip() and not ran.stderr
