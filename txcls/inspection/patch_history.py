"""When in training does a patch begin to work? One head's output at the tokens of one role, patched in every snapshot.

The texts are pairs with the same number of tokens and different classes, such as "A lost to B" and "A easily beat B".
"""

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.json_files import checked
from txcls.data.generated.who_won import TEAMS, other_construction, reports_of
from txcls.data.types import LabelledTexts
from txcls.errors import CheckpointError, TraceError
from txcls.inference.predictor import Predictor
from txcls.inspection.circuit import Circuit, RoleBatch, Row, role_batches
from txcls.tap import trace

TEAM_ROLES = ("first team", "second team")


@dataclass(frozen=True)
class PatchHistory:
    """The share of `n` texts whose prediction a patch changes to that of the other text of the pair, in each snapshot.

    Texts that the snapshot already assigns to that class without the patch do not count, so both shares begin near 0.

    Attributes:
        row: the head that is patched, and the role of the token at which it is patched.
        moved: (N,) share in each snapshot.
        control_role: the role of the token at which the same head is patched as a control.
        control: (N,) share in each snapshot with the control.
    """

    row: Row
    n: int
    moved: tuple[float, ...]
    control_role: str
    control: tuple[float, ...]

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> "PatchHistory | None":
        """The history stored in the checkpoint; None if there is none, or if it does not fit the snapshots."""
        try:
            history = checked(cls, checkpoint.metrics["patch_history"], where="patch_history")
        except (KeyError, CheckpointError):
            return None
        n = 0 if checkpoint.snapshots is None else len(checkpoint.snapshots)
        return history if len(history.moved) == len(history.control) == n else None

    def to_dict(self) -> Mapping[str, Any]:
        """Plain JSON values, for `metrics["patch_history"]`."""
        shares = {name: [round(share, 6) for share in getattr(self, name)] for name in ("moved", "control")}
        return {**asdict(self), **shares}


def measure_patch_history(classifier: Predictor, circuit: Circuit) -> PatchHistory:
    """Patch the circuit's first head for team names at the second team of `who_won` test reports.

    The patch comes from the counterfactual report, which uses another construction and has the other winner
    (`other_construction`); reports without one are left out. As a control, the head is patched at the first team.

    Raises:
        TraceError: the checkpoint has no snapshots, or the circuit has no such row.
    """
    checkpoint = classifier.checkpoint
    of_teams = next((step.row for step in circuit.kept if step.row.role == "team"), None)
    if checkpoint.snapshots is None or of_teams is None:
        raise TraceError(f"{checkpoint.name} has no snapshots, or its circuit has no row of a team")
    control_role, role = TEAM_ROLES
    row = replace(of_teams, role=role)
    pairs = [(report, other) for report in reports_of("test") if (other := other_construction(report)) is not None]
    labels = [TEAMS.index(report.loser) for report, _ in pairs]
    patched = LabelledTexts([report.text for report, _ in pairs], labels, TEAMS)
    patched_batches = role_batches(classifier.tokenizer, patched, [report.roles for report, _ in pairs], merged=False)
    source = LabelledTexts([other for _, other in pairs], labels, TEAMS)
    source_batches = role_batches(classifier.tokenizer, source, [{}] * len(pairs))  # equal lengths, so the same order
    model = copy.deepcopy(checkpoint.model)
    shares: dict[str, list[float]] = {row.role: [], control_role: []}
    for n in range(len(checkpoint.snapshots)):
        model.load_state_dict({name: weights[n].float() for name, weights in checkpoint.snapshots.weights.items()})
        snapshot = Predictor(replace(checkpoint, model=model))
        for role, moved in shares.items():
            n_moved = sum(
                _n_moved(snapshot, replace(row, role=role), *batches)
                for batches in zip(patched_batches, source_batches, strict=True)
            )
            moved.append(n_moved / len(pairs))
    return PatchHistory(row, len(pairs), tuple(shares[row.role]), control_role, tuple(shares[control_role]))


def _n_moved(classifier: Predictor, row: Row, patched: RoleBatch, source: RoleBatch) -> int:
    """Number of `patched` texts that get their label only with the head's output at the row's role from `source`."""
    tap = f"layers.{row.layer}.attn.z"
    with trace(record=[tap]) as activations:
        classifier.logits(source.ids)
    texts, tokens = np.arange(len(patched.ids)), (patched.roles == row.role).argmax(axis=1)

    def substitute(z: Tensor) -> Tensor:
        changed = z.clone()  # B H T E
        changed[texts, row.head, tokens] = activations[tap][texts, row.head, tokens]
        return changed

    without_patch = classifier.logits(patched.ids).argmax(dim=-1)
    with trace(record=(), edit={tap: substitute}):
        with_patch = classifier.logits(patched.ids).argmax(dim=-1)
    return int(((with_patch == patched.labels) & (without_patch != patched.labels)).sum())
