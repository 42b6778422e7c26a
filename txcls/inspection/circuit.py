"""Which attention rows suffice for the prediction? Make all other rows uniform, and measure the remaining accuracy.

A row is one head's attention from the tokens of one role: "2.2[class token]" is the attention of head 2 in layer 2
from the class token. `find_circuit` searches for the rows on validation texts; `measure_circuit` measures the accuracy
with only these rows on other texts, with all but these rows, and, as a control, with equally many other rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.checkpoint.card import card_part
from txcls.checkpoint.json_files import validate
from txcls.config import ModelConfig
from txcls.data.batches import batches_by_length
from txcls.data.datasets import open_dataset
from txcls.data.types import LabelledTexts, Roles, SplitName
from txcls.errors import CheckpointError, DataError
from txcls.evaluation.predict_logits import in_classes_of
from txcls.inference.predictor import Predictor, pad_rows
from txcls.tap import Edit, trace
from txcls.text.formatting import largest_margin, percentage
from txcls.text.tokenizer import Tokenizer
from txcls.text.tokens import Token

ANSWER_ROLES = ("winner", "loser")
"""Roles that depend on the true class; choosing rows by them would leak it."""
MERGED_ROLES = {"first team": "team", "second team": "team", "other team": "team", "other verb": "verb"}
"""Roles that are merged into one: only the grammar knows which teams and which verb belong to the reported match, so
choosing rows by these roles would leak part of the answer."""
CLASS_TOKEN, OTHER = "class token", "other token"
"""Roles for tokens that have none in the data set."""
BATCH_TEXTS = 256
MAX_KEPT_ROWS = 8
"""Maximum number of rows to keep."""
MIN_ACCURACY_GAIN = 0.001
"""Minimum gain in accuracy for keeping another row."""
N_CONTROLS = 100
"""Maximum number of sets of other rows used as controls; if more are possible, this many are drawn at random."""
N_SEARCH = 2000
"""Number of validation texts on which rows are chosen."""


@dataclass(frozen=True, slots=True)
class AttentionRow:
    """The attention of one head from the tokens of one role, written layer.head[role], from 1: 2.2[class token]."""

    layer: int
    head: int
    role: str

    def __str__(self) -> str:
        return f"{self.head_name}[{self.role}]"

    @property
    def head_name(self) -> str:
        """Layer and head, from 1: "2.2"."""
        return f"{self.layer + 1}.{self.head + 1}"


@dataclass(frozen=True)
class RoleBatch:
    """Texts of similar length: `ids` (B, T), `roles` of the tokens (B, T), "" for padding, and `labels` (B,)."""

    ids: Tensor
    roles: NDArray[np.str_]
    labels: Tensor


def roles_of(tokens: Sequence[Token], roles: Roles) -> list[str]:
    """The role of each token, ignoring the roles that depend on the true class; some are merged (MERGED_ROLES)."""
    allowed = [(name, ranges) for name, ranges in roles.items() if name not in ANSWER_ROLES]

    def role_of(token: Token) -> str:
        if token.is_special:
            return CLASS_TOKEN
        for name, ranges in allowed:
            if any(token.start < end and start < token.end for start, end in ranges):
                return MERGED_ROLES.get(name, name)
        return OTHER

    return [role_of(token) for token in tokens]


def role_batches(tokenizer: Tokenizer, rows: LabelledTexts, roles: Sequence[Roles]) -> list[RoleBatch]:
    """All texts in batches, with the roles of their tokens (see `roles_of`)."""
    encodings = [tokenizer.encode(text) for text in rows.texts]
    batches = []
    for indices in batches_by_length([len(encoding.ids) for encoding in encodings], batch_size=BATCH_TEXTS):
        ids = pad_rows([encodings[index].ids for index in indices])  # B T
        names = [roles_of(encodings[index].tokens, roles[index]) for index in indices]
        names = [[*of_text, *[""] * (ids.shape[1] - len(of_text))] for of_text in names]
        batches.append(RoleBatch(ids, np.array(names), torch.tensor([rows.labels[index] for index in indices])))
    return batches


def all_rows(classifier: Predictor, batches: Sequence[RoleBatch]) -> list[AttentionRow]:
    """One row for each combination of a head and a role that occurs in these texts."""
    config = classifier.checkpoint.config.model
    names = sorted({str(name) for batch in batches for name in np.unique(batch.roles)} - {""})
    return [AttentionRow(*row) for row in product(range(config.n_layers), range(config.n_heads), names)]


def acting_rows(classifier: Predictor, rows: Sequence[AttentionRow]) -> list[AttentionRow]:
    """The rows that can affect the prediction: in the last layer, only those of tokens that pooling reads."""
    config = classifier.checkpoint.config.model
    last = config.n_layers - 1
    return [row for row in rows if not config.reads_one_token or row.layer < last or row.role == CLASS_TOKEN]


def row_edits(roles: NDArray[np.str_], kept: Sequence[AttentionRow], config: ModelConfig) -> dict[str, Edit]:
    """Edits that make all attention uniform except in the kept rows; `roles` (B, T) are the roles of the tokens."""
    edits: dict[str, Edit] = {}
    for layer in range(config.n_layers):
        is_kept = np.zeros((len(roles), config.n_heads, roles.shape[1]), dtype=bool)  # B H T
        for row in kept:
            if row.layer == layer:
                is_kept[:, row.head] |= roles == row.role
        edits[f"layers.{layer}.attn.scores"] = partial(_uniform_except, torch.from_numpy(is_kept))
    return edits


def _uniform_except(is_kept: Tensor, scores: Tensor) -> Tensor:
    """The scores (B, H, T, T), set to 0 for all unmasked keys except in the kept rows, (B, H, T)."""
    is_kept = torch.nn.functional.pad(is_kept, (0, scores.shape[2] - is_kept.shape[2]))  # for models of fixed length
    return torch.where(is_kept[..., None] | ~torch.isfinite(scores), scores, 0.0)


def accuracy_of_rows(classifier: Predictor, batches: Sequence[RoleBatch], kept: Sequence[AttentionRow]) -> float:
    """The accuracy with all attention uniform except in the kept rows."""
    n_correct = 0
    for batch in batches:
        with trace(record=(), edit=row_edits(batch.roles, kept, classifier.checkpoint.config.model)):
            n_correct += int((classifier.logits(batch.ids).argmax(dim=-1) == batch.labels).sum())
    return n_correct / _n_texts(batches)


def find_circuit(classifier: Predictor, batches: Sequence[RoleBatch]) -> list[AttentionRow]:
    """The rows that a greedy search keeps on validation texts: at each step, the row that raises accuracy most."""
    candidates = all_rows(classifier, batches)
    kept: list[AttentionRow] = []
    accuracy = 0.0
    while candidates and len(kept) < MAX_KEPT_ROWS:
        accuracies = {row: accuracy_of_rows(classifier, batches, [*kept, row]) for row in candidates}
        best = max(accuracies, key=accuracies.__getitem__)
        if accuracies[best] < accuracy + MIN_ACCURACY_GAIN:
            break
        kept.append(best)
        candidates.remove(best)
        accuracy = accuracies[best]
    return kept


def expected_guess_accuracy(classifier: Predictor, batches: Sequence[RoleBatch]) -> float:
    """The expected accuracy of a random guess among the classes that a text names, or among all if it names none."""
    encoded = [classifier.tokenizer.encode(name).tokens for name in classifier.classes]
    names = [[token.id for token in tokens if not token.is_special] for tokens in encoded]
    class_tokens = {ids[0] for ids in names if len(ids) == 1}
    texts = [ids for batch in batches for ids in batch.ids.tolist()]
    return float(np.mean([1 / (len(class_tokens & set(ids)) or len(classifier.classes)) for ids in texts]))


def _n_texts(batches: Sequence[RoleBatch]) -> int:
    return sum(len(batch.ids) for batch in batches)


@dataclass(frozen=True)
class KeptRow:
    """A row that the search kept, and the `accuracy` by split with only this row and all earlier ones kept.

    `control` and `control_most` are the mean and the maximum accuracy with as many other rows that can affect the
    prediction; if more than one row is kept, one of them is the circuit's first row. `without` is the accuracy with
    only the kept rows uniform.
    """

    row: AttentionRow
    accuracy: Mapping[str, float]
    control: Mapping[str, float]
    control_most: Mapping[str, float]
    without: Mapping[str, float]


@dataclass(frozen=True)
class Circuit:
    """The rows found by a search, and the accuracy with them.

    Attributes:
        n: number of texts of each split on which accuracy was measured.
        n_search: number of validation texts on which the rows were chosen.
        n_rows: number of candidate rows.
        n_controls: maximum number of sets of rows used as controls.
        whole, none: accuracy by split with all rows kept, and with none.
        without: accuracy by split with only the rows of the circuit uniform, and all others kept.
        guess: expected accuracy by split of a random guess among the classes that a text names.
        kept: the rows in the order in which they were chosen.
        all_controls: whether the controls are all possible sets; if not, there were too many, and a sample was drawn.
    """

    n: Mapping[str, int]
    n_search: int
    n_rows: int
    n_controls: int
    whole: Mapping[str, float]
    none: Mapping[str, float]
    without: Mapping[str, float]
    guess: Mapping[str, float]
    kept: tuple[KeptRow, ...]
    all_controls: bool = False

    @classmethod
    def of(cls, classifier: Predictor) -> "Circuit | None":
        """The circuit stored in the checkpoint; None if there is none, or if it does not fit the model."""
        config = classifier.checkpoint.config.model
        try:
            circuit = validate(cls, classifier.checkpoint.metrics["circuit"], where="circuit")
        except (KeyError, CheckpointError):
            return None
        fits = all(step.row.layer < config.n_layers and step.row.head < config.n_heads for step in circuit.kept)
        return circuit if fits else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, for `metrics["circuit"]`."""
        values = asdict(self)
        return {**values, "kept": list(values["kept"]), "card": [card_part(self._method, self._head, self._rows())]}

    @property
    def _method(self) -> str:
        rows = ", ".join(map(str, range(1, len(self.kept) + 1)))
        without = ", ".join(percentage(step.without["test"]) for step in self.kept)
        controls = "all" if self.all_controls else f"up to {self.n_controls} random"
        return (
            "Circuit: the attention rows that a greedy search kept, at each step the row that raised accuracy most; "
            "other sets of rows may do as well. Accuracy with uniform attention in all rows except those kept "
            "(`measure NAME circuit`). A row is one head's attention from the tokens of one role: layer.head [role], "
            f"{self.n_rows} in all. They were chosen one after another on {self.n_search:,} validation texts. The "
            f"role “team” is every team of a text, including those of other matches. Control: {controls} sets of as "
            "many rows, made of the first row and others that can affect the prediction (for one row: any other row), "
            f"mean and, in brackets, best. With all rows but the first {rows} rows: {without} on test texts. Uniform "
            "rows still mix the tokens' values, and the feed-forward blocks are unchanged. 95 % intervals of these "
            f"accuracies: at most {largest_margin(min(self.n.values()))}."
        )

    @property
    def _head(self) -> tuple[str, ...]:
        return ("rows kept", *self.n, *(f"control, {split}" for split in self.n))

    def _rows(self) -> Iterator[list[str]]:
        """Yield the table's rows: accuracies for a guess, after each row that was kept, and with all rows."""
        splits, dashes = list(self.n), ["–"] * len(self.n)

        def plain(name: str, accuracy: Mapping[str, float]) -> list[str]:
            return [name, *(percentage(accuracy[split]) for split in splits), *dashes]

        yield plain("a guess among the classes that a text names", self.guess)
        yield plain("none", self.none)
        for step in self.kept:
            controls = (f"{percentage(step.control[n])} ({percentage(step.control_most[n])})" for n in splits)
            name = f"{'and ' if step is not self.kept[0] else ''}{step.row.head_name} [{step.row.role}]"
            yield [name, *(percentage(step.accuracy[split]) for split in splits), *controls]
        yield plain("all but these", self.without)
        yield plain("all", self.whole)


def measure_circuit(classifier: Predictor, *, on_stage: Callable[[str], None] | None = None) -> Circuit:
    """Search for rows on validation texts, and measure them on the splits `test` and `new`.

    Raises:
        DataError: the data are missing, or do not give the roles of the words.
    """
    report = on_stage or (lambda message: None)
    dataset = open_dataset(classifier.checkpoint.config.data)
    roles_of_split = dataset.roles
    if roles_of_split is None:
        raise DataError(f"{dataset.info.name} does not give the roles of the words of its texts; who_won does")

    def read(split: SplitName, limit: int | None = None) -> list[RoleBatch]:
        rows = in_classes_of(dataset.load(split), classifier.checkpoint)
        rows = rows.subset(range(len(rows))[:limit])
        return role_batches(classifier.tokenizer, rows, roles_of_split(split))

    search = read("validation", N_SEARCH)
    candidates = all_rows(classifier, search)
    n_search = _n_texts(search)
    report(f"searching for rows on {n_search:,} validation texts")
    kept = find_circuit(classifier, search)
    test_splits: tuple[SplitName, ...] = ("test", "new")
    batches_of = {split: read(split) for split in test_splits}
    accuracy_on = {split: partial(accuracy_of_rows, classifier, batches) for split, batches in batches_of.items()}
    random = np.random.default_rng(0)
    measured, n_possible = [], 0
    for n in range(1, len(kept) + 1):
        others = [row for row in acting_rows(classifier, candidates) if row not in kept[:n]]
        first, n_others = kept[: min(1, n - 1)], min(max(1, n - 1), len(others))
        n_possible = max(n_possible, comb(len(others), n_others))
        controls = [[*first, *chosen] for chosen in _choices(others, n_others, random)]
        report(f"measuring {n} of {len(kept)} rows and {len(controls)} controls")
        others_only = [row for row in candidates if row not in kept[:n]]
        of_controls = {split: [accuracy(rows) for rows in controls] for split, accuracy in accuracy_on.items()}
        measured.append(
            KeptRow(
                kept[n - 1],
                {split: accuracy(kept[:n]) for split, accuracy in accuracy_on.items()},
                {split: float(np.mean(accuracies)) for split, accuracies in of_controls.items()},
                {split: max(accuracies) for split, accuracies in of_controls.items()},
                {split: accuracy(others_only) for split, accuracy in accuracy_on.items()},
            )
        )
    return Circuit(
        n={split: _n_texts(batches) for split, batches in batches_of.items()},
        n_search=n_search,
        n_rows=len(candidates),
        n_controls=N_CONTROLS,
        whole={split: accuracy(candidates) for split, accuracy in accuracy_on.items()},
        none={split: accuracy([]) for split, accuracy in accuracy_on.items()},
        without=measured[-1].without,
        guess={split: expected_guess_accuracy(classifier, batches) for split, batches in batches_of.items()},
        kept=tuple(measured),
        all_controls=n_possible <= N_CONTROLS,
    )


def _choices(rows: Sequence[AttentionRow], n: int, random: np.random.Generator) -> list[tuple[AttentionRow, ...]]:
    """All choices of `n` of the rows, or N_CONTROLS random ones if there are more."""
    if comb(len(rows), n) <= N_CONTROLS:
        return list(combinations(rows, n))
    return [tuple(rows[index] for index in random.permutation(len(rows))[:n]) for _ in range(N_CONTROLS)]
