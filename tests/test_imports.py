"""Imports go one way: a module may import from its own layer and from later rows of LAYERS; no cycles."""

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LAYERS: tuple[tuple[str, ...], ...] = (
    ("app", "cli"),
    ("address", "classifier", "lessons", "sklearn", "web"),
    ("figures",),
    ("inspection",),
    ("evaluation", "language", "training"),
    ("checkpoint", "predictor"),
    ("data", "model", "text"),
    ("config", "errors", "runtime", "tap", "wording"),
)
ROW = {part: row for row, parts in enumerate(LAYERS) for part in parts}
ENTRANCES = ("txcls", "txcls.__main__")  # may import anything; nothing imports them, except for the version number


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def sources() -> dict[str, str]:
    """The source text of every module in the package, keyed by module name."""
    return {module_name(path.relative_to(ROOT)): path.read_text("utf-8") for path in (ROOT / "txcls").rglob("*.py")}


@cache
def imported_names(source: str) -> tuple[str, ...]:
    """Dotted names that a module imports anywhere, including inside functions and for type checking."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute: from txcls.x import y"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(names)


def imports(modules: Mapping[str, str]) -> dict[str, set[str]]:
    """The package's modules that each module imports; a name inside a module counts as that module."""
    graph: dict[str, set[str]] = {}
    for module, source in modules.items():
        targets = graph.setdefault(module, set())
        for name in imported_names(source):
            if name.partition(".")[0] != "txcls" or name == "txcls.__version__":
                continue
            while name not in modules:
                name = name.rpartition(".")[0]
            targets.add(name)
    return graph


def part(module: str) -> str:
    return module.split(".")[1]


def part_or_entrance(module: str) -> str:
    return module if module in ENTRANCES else part(module)


def wrong_directions(modules: Mapping[str, str]) -> list[str]:
    def allowed(module: str, target: str) -> bool:
        if module in ENTRANCES or target in ENTRANCES:
            return module in ENTRANCES
        return ROW[part(module)] <= ROW[part(target)]

    return [
        f"{module} imports {target}"
        for module, targets in imports(modules).items()
        for target in sorted(targets)
        if not allowed(module, target)
    ]


def cycle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """One cycle, as the modules along it with the first repeated at the end; empty if there is none."""
    done: set[str] = set()

    def follow(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module not in done:
            for target in sorted(graph.get(module, ())):
                if found := follow(target, [*path, module]):
                    return found
            done.add(module)
        return []

    return next((found for module in sorted(graph) if (found := follow(module, []))), [])


def importers(modules: Mapping[str, str], library: str) -> set[str]:
    return {
        module
        for module, source in modules.items()
        if any(name.partition(".")[0] == library for name in imported_names(source))
    }


def strangers(modules: Mapping[str, str], library: str, *, allowed: Iterable[str]) -> set[str]:
    """Modules outside `allowed` that import the library."""
    return {module for module in importers(modules, library) if module in ENTRANCES or part(module) not in allowed}


def test_every_module_has_a_place_in_the_order():
    assert {part(module) for module in sources() if module not in ENTRANCES} <= set(ROW)


def test_imports_run_one_way():
    assert not wrong_directions(sources())


def test_there_are_no_import_cycles():
    assert not cycle(imports(sources()))


def test_inference_never_imports_training():
    users = {
        module
        for module, targets in imports(sources()).items()
        if part_or_entrance(module) != "training" and any(target.startswith("txcls.training") for target in targets)
    }
    assert users == {
        "txcls.classifier",
        "txcls.cli.train",
        "txcls.cli.train_file",
        "txcls.app.jobs.train_model",
        "txcls.sklearn",
    }


def test_only_the_app_imports_streamlit():
    assert not strangers(sources(), "streamlit", allowed=["app"])


def test_nothing_below_figures_imports_plotly():
    assert not strangers(sources(), "plotly", allowed=[*LAYERS[0], *LAYERS[1], *LAYERS[2]])
