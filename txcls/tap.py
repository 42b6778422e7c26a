"""Named points in the model at which tensors can be read or edited while a trace is open.

A `Tap` is an identity module that a tensor of the model passes through; its name is its module path
(`layers.0.attn.pattern`). Without an open trace, it takes about a microsecond. While a trace is open, it records the
tensor, or replaces it with the result of an edit:

    with trace(record=["layers.0.attn.pattern"]) as activations:
        model(ids)
    activations["layers.0.attn.pattern"]  # B H T T

The open trace is stored in a `ContextVar`, so that threads (and asyncio tasks) that share a model do not see each
other's tensors, unlike with forward hooks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase

from torch import Tensor, nn

from txcls.errors import TraceError, UnknownNameError

Edit = Callable[[Tensor], Tensor]

_open_trace: ContextVar["Trace | None"] = ContextVar("txcls_open_trace", default=None)


class Trace:
    """The tensors recorded by an open trace; created by `trace()`, used like a dictionary from tap name to tensor."""

    def __init__(self, *, record: Iterable[str] | None, edit: Mapping[str, Edit]) -> None:
        self._patterns = None if record is None else tuple(record)
        self._edits = dict(edit)
        self.values: dict[str, Tensor] = {}
        self.edited: set[str] = set()
        self.passed: list[str] = []

    def __getitem__(self, name: str) -> Tensor:
        """The tensor recorded at tap `name`, after its edit if it has one; TraceError if nothing was recorded there."""
        try:
            return self.values[name]
        except KeyError:
            raise UnknownNameError("nothing was recorded at", name, self.values) from None

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def watches(self, name: str) -> bool:
        """Whether the tensor at tap `name` is edited or recorded."""
        return name in self._edits or self._is_recorded(name)

    def _is_recorded(self, name: str) -> bool:
        return self._patterns is None or any(fnmatchcase(name, pattern) for pattern in self._patterns)

    def visit(self, name: str, value: Tensor) -> Tensor:
        """Apply the tap's edit to its tensor, record the result, and return it; called by the tap."""
        self.passed.append(name)
        edit = self._edits.get(name)
        if edit is not None:
            replaced = edit(value)
            if replaced.shape != value.shape:
                raise TraceError(
                    f"the edit at {name!r} returned shape {tuple(replaced.shape)}; expected {tuple(value.shape)}"
                )
            value = replaced
            self.edited.add(name)
        if self._is_recorded(name):
            self.values[name] = value
        return value

    def check(self) -> None:
        """Raise TraceError if the model never reached an edited tap, or if none of the requested taps was recorded."""
        if unreached := sorted(set(self._edits) - self.edited):
            raise TraceError(
                f"no tap named {', '.join(unreached)}; the model passed {', '.join(self.passed) or 'none'}"
            )
        if not self.values and (self._patterns is None or self._patterns):
            expected = "anything" if self._patterns is None else ", ".join(self._patterns)
            raise TraceError(f"the trace recorded nothing (expected {expected}); run the model inside the `with` block")


@contextmanager
def trace(*, record: Iterable[str] | None = None, edit: Mapping[str, Edit] | None = None) -> Iterator[Trace]:
    """Record (and edit) the tensors at the model's taps until the block ends.

    Args:
        record: names or shell-style patterns (`layers.*.attn.pattern`) to record; None for all, `()` for none.
        edit: for each tap name, a function that takes the tensor and returns its replacement, of the same shape.

    Raises:
        TraceError: an edit's tap was never reached, or nothing was recorded.
    """
    active = Trace(record=record, edit=edit or {})
    token = _open_trace.set(active)
    try:
        yield active
    finally:
        _open_trace.reset(token)
    active.check()


class Tap(nn.Module):
    """An identity module at which an open trace can read or edit the tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.name = ""  # its path in the model, set once by name_taps

    @property
    def is_watched(self) -> bool:
        """Whether a trace that is open in this thread or task records or edits this tap's tensor.

        If not, attention and LayerNorm use fused kernels, which do not compute tensors that only a tap needs.
        """
        active = _open_trace.get()
        return active is not None and active.watches(self.name)

    def forward(self, value: Tensor) -> Tensor:
        active = _open_trace.get()
        return value if active is None else active.visit(self.name, value)


def name_taps(model: nn.Module) -> tuple[str, ...]:
    """Set each tap's name to its module path in `model`, and return the names in module order."""
    names = []
    for path, module in model.named_modules():
        if isinstance(module, Tap):
            module.name = path
            names.append(path)
    return tuple(names)
