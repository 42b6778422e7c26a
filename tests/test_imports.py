import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LAYERS: tuple[tuple[str, ...], ...] = (
    ("app", "cli"),
    ("classifier", "lessons", "sklearn", "web"),
    ("figures",),
    ("inspection",),
    ("evaluation", "training"),
    ("checkpoint", "inference"),
    ("data", "model", "text"),
    ("config", "errors", "tap"),
)
LAYER_OF = {part: number for number, parts in enumerate(LAYERS) for part in parts}
ENTRY_POINTS = ("txcls", "txcls.__main__")  # may import anything; nothing imports them, except for the version number


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


@cache
def names_by_module() -> dict[str, tuple[str, ...]]:
    """The names that each module of the package imports."""
    names = {}
    for path in (ROOT / "txcls").rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        names[module] = imported_names(path.read_text("utf-8"))
    return names


@cache
def import_graph() -> dict[str, set[str]]:
    """The package's modules that each module imports; a name inside a module counts as that module."""
    modules = names_by_module()
    graph: dict[str, set[str]] = {module: set() for module in modules}
    for module, names in modules.items():
        for name in names:
            if name.partition(".")[0] == "txcls" and name != "txcls.__version__":
                while name not in modules:
                    name = name.rpartition(".")[0]
                graph[module].add(name)
    return graph


def part(module: str) -> str:
    return module if module in ENTRY_POINTS else module.split(".")[1]


def parts_that_import(library: str) -> set[str]:
    return {
        part(module)
        for module, names in names_by_module().items()
        if any(name.partition(".")[0] == library for name in names)
    }


def test_every_module_belongs_to_a_layer():
    assert {part(module) for module in import_graph()} == {*LAYER_OF, *ENTRY_POINTS}


def test_imports_go_one_way():
    assert not [
        f"{module} imports {target}"
        for module, targets in import_graph().items()
        for target in targets
        if module not in ENTRY_POINTS and (target in ENTRY_POINTS or LAYER_OF[part(module)] > LAYER_OF[part(target)])
    ]


def test_there_are_no_import_cycles():
    TopologicalSorter(import_graph()).prepare()  # raises CycleError


def test_inference_never_imports_training():
    importers = {
        module
        for module, targets in import_graph().items()
        if part(module) != "training" and any(target.startswith("txcls.training") for target in targets)
    }
    assert importers == {
        "txcls.classifier",
        "txcls.cli.data",  # refuses the rows that training refuses
        "txcls.cli.train",
        "txcls.sklearn",
    }


def test_only_the_app_imports_streamlit():
    assert parts_that_import("streamlit") == {"app"}


def test_nothing_below_figures_imports_plotly():
    assert parts_that_import("plotly") <= {*LAYERS[0], *LAYERS[1], *LAYERS[2]}
