import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SLOW_TO_IMPORT = {
    "torch",
    "streamlit",
    "plotly",
    "pandas",
    "pyarrow",
    "nltk",
    "sklearn",
    "scipy",
    "tokenizers",
    "huggingface_hub",
    "pooch",
}
REPORT = "import atexit, sys; atexit.register(lambda: print('\\n', *sys.modules, file=sys.stderr)); "


def modules_after(code: str) -> set[str]:
    """All modules that a fresh interpreter has imported after running this code."""
    ran = subprocess.run([sys.executable, "-c", REPORT + code], cwd=ROOT, check=True, capture_output=True, text=True)
    return set(ran.stderr.splitlines()[-1].split())


def packages(modules: set[str]) -> set[str]:
    """The installed packages among these modules, without the standard library and txcls."""
    return {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - {"txcls", "__main__"}


def test_importing_the_package_imports_no_library_and_no_module_of_its_own() -> None:
    modules = modules_after("import txcls")
    assert packages(modules) == packages(modules_after("pass"))
    assert {module for module in modules if module.startswith("txcls")} == {"txcls"}


def test_help_imports_only_typer_and_the_command_line() -> None:
    show = "sys.argv = ['x', '--help']; "
    bare = modules_after(show + "import typer; typer.run(lambda: None)")
    ours = modules_after(show + "import txcls.cli; txcls.cli.main()")
    assert "typer" in packages(ours) and packages(ours) <= packages(bare)
    own = {module for module in ours if module.startswith("txcls")}
    assert own == {"txcls", "txcls.errors", "txcls.cli", "txcls.cli.shared"}


NLTKS = {"nltk", "sklearn", "scipy", "pandas", "pyarrow"}
"""NLTK and the packages that it imports."""


@pytest.mark.parametrize("name, slow", [("who_won", {"torch", *NLTKS}), ("ag_news", {"torch", "tokenizers"})])
def test_a_prediction_imports_torch_the_tokenizer_and_nothing_else_that_is_slow(name: str, slow: set[str]) -> None:
    modules = modules_after(
        f"import txcls; c = txcls.load({name!r}); c('Rovers land.'); c.probabilities(['Rovers land.'])"
    )
    assert packages(modules) & SLOW_TO_IMPORT == slow
    assert not [module for module in modules if module.startswith(("txcls.training", "txcls.inspection", "txcls.cli"))]


@pytest.mark.parametrize("module", ["txcls.cli", "txcls.config"])
def test_importing_loads_no_slow_library(module: str) -> None:
    assert not packages(modules_after(f"import {module}")) & SLOW_TO_IMPORT


def test_the_server_begins_without_torch_so_that_memory_can_be_returned() -> None:
    code = "import sys, txcls.app.shell.server; print(sorted({'torch', 'pandas'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]", "settings of glibc are for allocations after them"
