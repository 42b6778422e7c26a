import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import txcls
from docs.command_line import FILE, command_line_page
from tests.conftest import slow_but
from tests.test_imports import imported_names

ROOT = Path(__file__).resolve().parent.parent
# The brackets keep this file from matching itself.
MACHINE_PATHS = re.compile(r"(?<![\w.$}])/(?:roo[t]|hom[e]|User[s]|wor[k])/\w|[A-Z]:\\User[s]")


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_the_page_on_the_command_line_is_what_the_commands_say():
    assert FILE.read_text("utf-8") == command_line_page(), "out of date: run `make docs`"


def test_links_between_documents_lead_somewhere():
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "deploy").glob("*.md")]
    links = [
        (path, target)
        for path in documents
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text("utf-8"))
        if "://" not in target
    ]
    broken = [f"{path.name}: {target}" for path, target in links if not (path.parent / target).exists()]
    assert not broken


def test_files_name_no_path_of_the_machine_they_were_written_on():
    assert MACHINE_PATHS.search(f"see /{'home'}/ann/notes.txt")
    assert not MACHINE_PATHS.search("https://example.org/home/ann and ./work/x and $HOME/work/x")
    found = []
    for path in tracked_files():
        data = path.read_bytes()
        if b"\0" in data:
            continue
        for number, line in enumerate(data.decode("utf-8").splitlines(), 1):
            if MACHINE_PATHS.search(line) or str(ROOT) in line:
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found


def test_no_tracked_file_is_larger_than_hosts_take():
    assert not [path for path in tracked_files() if path.stat().st_size > 10_000_000]


def test_the_built_package_holds_every_file_beside_its_code():
    with (ROOT / "pyproject.toml").open("rb") as file:
        patterns = tomllib.load(file)["tool"]["setuptools"]["package-data"]["txcls"]
    package = Path(txcls.__path__[0])
    data_files = [path for path in tracked_files() if path.is_relative_to(package) and path.suffix != ".py"]
    assert data_files
    assert not set(data_files) - {path for pattern in patterns for path in package.glob(pattern)}


def test_the_changelog_and_the_citation_have_the_version_and_its_date():
    newest = re.search(r"^## \[([\d.]+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest is not None and newest[1] == txcls.__version__
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {newest[1]}\ndate-released: {newest[2]}\n" in citation


def test_torch_is_pinned_exactly_and_everything_has_an_upper_bound():
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    requirements = [line for line in lines if line and not line.startswith("#")]
    assert any(re.fullmatch(r"torch==[\d.]+", line) for line in requirements)
    assert not [line for line in requirements if "<" not in line and "==" not in line]


@pytest.mark.parametrize("name", ["requirements", "requirements-dev"])
def test_a_lock_file_holds_what_is_required_by_hash_and_no_address(name: str) -> None:
    lock = (ROOT / f"{name}.lock").read_text("utf-8")
    versions = dict(re.findall(r"^(\S+)==(\S+)", lock, re.MULTILINE))
    for line in (ROOT / f"{name}.txt").read_text("utf-8").splitlines():
        if match := re.match(r"([\w-]+)(?:\[\w+\])?([=<>~][^#]*)", line):
            package = match[1].lower().replace("_", "-")
            assert SpecifierSet(match[2].strip()).contains(versions[package]), f"{line}: run `make lock`"
    entries = re.split(r"\n(?=\S)", lock.split("\n", 1)[1].strip())
    assert all("--hash=sha256:" in entry for entry in entries) and "://" not in lock


def test_requirements_name_every_library_that_the_package_imports():
    code = [ROOT / "streamlit_app.py", *(ROOT / "txcls").rglob("*.py")]
    roots = {name.partition(".")[0] for path in code for name in imported_names(path.read_text("utf-8"))}
    projects = {"sklearn": "scikit-learn", "yaml": "PyYAML", "markdown_it": "markdown-it-py", "PIL": "pillow"}
    imported = {projects.get(name, name) for name in roots - sys.stdlib_module_names - {"txcls"}}
    required = set(re.findall(r"^[\w-]+", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE))
    assert imported <= required


@pytest.mark.parametrize("name", slow_but(["README.md"], ["README.md", "docs/python.md"]))
def test_the_documented_python_runs(name):
    code = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL))
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "Business {'Business': 0." in ran.stdout
