"""The Python interface: `load` or `train` a classifier, then call, inspect, change, measure and save it.

classifier = txcls.load("ag_news")
classifier("Rovers land on a comet").label
classifier.trace("Rovers land on a comet")["layers.0.attn.pattern"]  # (H, T, T)
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.config import ModelConfig
from txcls.errors import CheckpointError, list_names, sanitize
from txcls.inference.predictor import Prediction, Predictor
from txcls.text.checks import check_text
from txcls.text.formatting import percentage

if TYPE_CHECKING:
    from txcls.evaluation.evaluate import Evaluation
    from txcls.inspection.ablation import AblationMethod, AblationResult, Means, OutputAblation, PartEffects
    from txcls.inspection.attribution import Baseline, Explanation, Target
    from txcls.inspection.steps import Walk
    from txcls.inspection.tracing import TracedText

Head = tuple[int, int]
"""(layer, head), both counted from 0, as in `traced.attention[layer, head]`."""


class Classifier(Predictor):
    """A trained classifier; it is never modified, so threads can share it.

        classifier("Shares fell").label
        classifier(["Shares fell", "Rovers land"], top_k=2)

    For many texts, `probabilities` is several times faster, and returns an array.
    """

    @overload
    def __call__(self, texts: str, *, top_k: int | None = None) -> Prediction: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, texts: Iterable[str], *, top_k: int | None = None) -> list[Prediction]: ...
    def __call__(self, texts: str | Iterable[str], *, top_k: int | None = None) -> Prediction | list[Prediction]:
        """The prediction for one text, or a list of predictions for several texts, in the same order.

        Args:
            texts: one string, or a list, tuple, array, pandas Series or other iterable of strings.
            top_k: how many classes to rank, at least 1; None for all.

        Raises:
            TypeError: `texts` is a table, or contains a value that is not a string; the message gives its row.
            ValueError: top_k is below 1.
        """
        if isinstance(texts, str):
            return self.predict([texts], top_k=top_k)[0]
        return self.predict(texts, top_k=top_k)

    def trace(self, text: str) -> "TracedText":
        """Record every tensor of one text's forward pass, by name.

            traced = classifier.trace("Rovers land on a comet")
            traced["layers.0.attn.pattern"]  # (H, T, T): weight of each key (column) for each query (row)
            traced.attention[0, 1]           # (T, T): layer 0, head 1
            traced                           # shows all names and shapes

        `txcls.figures.attention_map(traced.attention[0, 1], traced.tokens)` draws one head,
        `txcls.figures.attention_grid(traced.attention)` draws all of them.

        Raises:
            TraceError: the text has no words.
            TypeError: the text is not a string.
        """
        from txcls.inspection.tracing import trace_text

        return trace_text(self, text)

    def walk(self, text: str) -> "Walk":
        """The forward pass of one text step by step: formula, code, numbers and the arithmetic of each number.

            walk = classifier.walk("Rovers land on a comet")
            step = walk.steps[walk.find("softmax", layer=1)]
            step.cells(head=2)                          # (T, T)
            step.explain(row=1, column=4, head=2).lines

        Raises:
            TraceError: the text has no words.
            TypeError: the text is not a string.
        """
        from txcls.inspection.steps import walk_through

        return walk_through(self, text)

    def explain(
        self,
        text: str,
        *,
        method: str | None = None,
        target: "Target" = "logit",
        baseline: "Baseline" = "blank",
    ) -> "Explanation":
        """Score the words of one text for the predicted class.

            explained = classifier.explain("Rovers land on a comet", method="leave_one_out")
            explained.words, explained.scores["leave_one_out"]  # W words, (W,)

        Args:
            text: with at least one word.
            method: "rollout", "gradient", "integrated" or "leave_one_out"; None for all. All but rollout are signed:
                positive scores support the class.
            target: the output that the scores explain, the class's "logit" or "probability".
            baseline: the baseline of integrated gradients, "blank" tokens (mask tokens for subwords, otherwise unknown
                words) or "zero" vectors.

        Raises:
            TraceError: the text has no words.
            ValueError: there is no such method or target.
            TypeError: the text is not a string.
        """
        from txcls.inspection.attribution import explain

        return explain(self, text, target=target, baseline=baseline, methods=None if method is None else (method,))

    def ablate(
        self,
        text: str,
        *,
        heads: Head | Sequence[Head] | Literal["all"] = (),
        feed_forward: int | Sequence[int] | Literal["all"] = (),
        positions: bool = False,
        how: "AblationMethod" = "zero",
        means: "Means | None" = None,
    ) -> "AblationResult":
        """Change one or more parts of the model at once, and compare the prediction for one text.

            classifier.ablate(text, heads=(0, 2)).effect[0]                   # layer 0, head 2, its output set to zero
            classifier.ablate(text, heads=[(0, 2), (1, 3)], how="uniform")    # uniform attention in two heads
            classifier.ablate(text, heads="all", feed_forward=1)

        `original` (C,) and `changed` (1, C) are probabilities; `effect` (1,) is the change in the probability of the
        predicted class.

        Args:
            text: with at least one word.
            heads: one (layer, head), several, or "all"; counted from 0.
            feed_forward: layers of the feed-forward blocks to change, or "all".
            positions: whether to change the position vectors.
            how: set outputs to "zero" or to their "mean"; for heads also "uniform" (equal attention to all
                keys).
            means: the mean outputs for how="mean", from `txcls.inspection.ablation.measure_means`.

        Raises:
            TraceError: the text has no words, or the model has no position vectors.
            ValueError: there is no such head or layer, no part is named, or `how` does not apply to a part.
            TypeError: the text is not a string, or a head is not a pair of numbers.
        """
        from txcls.inspection.ablation import Ablation, ablate

        config = self.checkpoint.config.model
        changes = [Ablation("head", how, layer, head) for layer, head in _heads(heads, config)]
        changes += [Ablation("feed_forward", how, layer) for layer in _blocks(feed_forward, config)]
        changes += [Ablation("positions", how)] if positions else []
        if not changes:
            raise ValueError('got nothing to change; name parts, for example heads=(0, 2) or feed_forward="all"')
        return ablate(self, check_text(text), [changes], means=means)

    def ablate_each(
        self,
        text: str,
        *,
        heads: "AblationMethod" = "zero",
        feed_forward: "OutputAblation" = "zero",
        means: "Means | None" = None,
    ) -> "PartEffects":
        """Change each head and each feed-forward block, one at a time, and compare the prediction for one text.

            effects = classifier.ablate_each("Rovers land on a comet")
            effects.heads, effects.feed_forward  # (L, H), (L,): changes of the predicted class's probability

        `heads` can also be "uniform"; for arguments and errors see `ablate`.
        """
        from txcls.inspection.ablation import ablate_each

        return ablate_each(self, text, heads=heads, feed_forward=feed_forward, means=means)

    def evaluate(self, texts: Iterable[str], labels: Iterable[object], *, without_order: bool = False) -> "Evaluation":
        """Accuracy, macro-F1, calibration error, confusion matrix and accuracy by length on labelled texts.

            measured = classifier.evaluate(*txcls.dataset("ag_news").test)
            measured.metrics.accuracy, measured.metrics.confusion

        Args:
            texts: strings, as for `probabilities`.
            labels: the class of each text; 3 and 3.0 both mean the class "3".
            without_order: also measure accuracy with shuffled words and without positions.

        Raises:
            TypeError: a text is not a string; the message gives the row.
            ValueError: the numbers of texts and labels differ.
            DataError: a row has no text or no label, or its label is not one of the classes.
        """
        from txcls.data.labelled import rows_from_python
        from txcls.evaluation.evaluate import evaluate_rows

        rows = rows_from_python(texts, labels, classes=self.classes)
        rows = replace(rows, texts=list(map(self.visible_text, rows.texts)))
        return evaluate_rows(self.checkpoint, rows, measure_without_order=without_order)

    @property
    def comparison(self) -> Comparison | None:
        """The comparison with the linear model on the classifier's test rows; None if it was not made."""
        values = self.checkpoint.metrics.get("comparison")
        return None if values is None else Comparison.from_dict(values)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a checkpoint folder that `txcls.load(path)` and the command line can read.

        The folder's name becomes the checkpoint's name; a checkpoint in `checkpoints/` can be loaded by its name.

        Raises:
            CheckpointError: `path` exists (with `overwrite`: exists and is not a checkpoint), or cannot be written.
        """
        folder = Path(path)
        with suppress(OSError):  # a name that is too long, which saving reports
            if folder.exists() and not overwrite:
                raise CheckpointError(f"{folder} exists; choose another folder, or replace it with overwrite=True")
        return save_checkpoint(self.checkpoint, folder)

    def __repr__(self) -> str:
        """One line: name, classes, size, and accuracy if it was measured."""
        facts = [
            f"{len(self.classes)} classes: {list_names(self.classes, limit=4)}",
            f"{self.n_parameters:,} parameters",
        ]
        for split in ("test", "validation"):
            accuracy = self.checkpoint.metrics.get(split, {}).get("accuracy")
            if accuracy is not None:
                facts.append(f"{split} accuracy {percentage(accuracy)}")
                break
        return f"Classifier('{sanitize(self.name, limit=60)}', {', '.join(facts)})"


def _heads(value: Any, config: ModelConfig) -> list[Head]:
    """Pairs (layer, head) from one pair, several pairs, or "all"; raises TypeError for anything else."""
    if isinstance(value, str) and value == "all":
        return [(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)]
    try:
        pairs = [value] if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], int) else value
        return [(index(layer), index(head)) for layer, head in pairs]
    except (TypeError, ValueError):
        raise TypeError(f'got heads={value!r:.80}; expected (layer, head), a list of such pairs, or "all"') from None


def _blocks(value: Any, config: ModelConfig) -> list[int]:
    """Layer indices from one layer, several layers, or "all"; raises TypeError for anything else."""
    if isinstance(value, str) and value == "all":
        return list(range(config.n_layers))
    try:
        return [index(layer) for layer in ([value] if isinstance(value, int) else value)]
    except TypeError:
        raise TypeError(f'got feed_forward={value!r:.80}; expected a layer, a list of layers, or "all"') from None


def load(path_or_name: str | Path) -> Classifier:
    """Load a classifier onto the CPU.

        classifier = txcls.load("ag_news")             # the name of a folder in checkpoints/
        classifier = txcls.load("somewhere/my_model")  # a folder
        classifier = txcls.load("model.zip")           # a file that the playground saved

    Raises:
        CheckpointError: there is no such checkpoint (the message lists the names), it is damaged, or it is a language
            model.
        TypeError: `path_or_name` is neither a string nor a path.
    """
    return Classifier.load(path_or_name)


def checkpoints() -> dict[str, str]:
    """The titles of the classifiers in `checkpoints/`, keyed by the name that `load` takes."""
    from txcls.checkpoint.listing import list_checkpoints

    return {summary.name: summary.title for summary in list_checkpoints().classifiers}


def train(
    texts: Iterable[str],
    labels: Iterable[object],
    *,
    minutes: float | None = None,
    test: tuple[Iterable[str], Iterable[object]] | None = None,
    init: str | Path | None = None,
    preset: str | Path | None = None,
    settings: Sequence[str] = (),
    validation: tuple[Iterable[str], Iterable[object]] | float | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    seed: int = 0,
    progress: bool = True,
) -> Classifier:
    """Train a classifier on your own texts, as `python -m txcls train FILE` does on a file.

        classifier = txcls.train(df["text"], df["label"])
        print(classifier.comparison)

    Settings are chosen from the texts and the time budget, and training starts from the shipped encoder. A fifth of the
    rows is held out unless `test` is given, and `classifier.comparison` is the comparison with the linear model on
    these rows. If `preset`, `settings`, `validation` or `init` is given, training works like `python -m txcls train
    PRESET --data FILE` instead: without test rows, and with at least two rows per class unless validation rows are
    given.

    Labels become class names as in a table: strings are stripped, 3.0 becomes "3", True and "TRUE" become "true", and
    all other values are converted with `str`.

    Args:
        texts: strings; a list, tuple, array, pandas Series or other iterable.
        labels: the class of each text; any hashable value.
        minutes: the time budget; None for 5.
        test: test rows as (texts, labels).
        init: a pre-trained model to start from, by name or path.
        preset: a name (`txcls.config.preset_names()`) or a TOML file.
        settings: changes to the preset (or to "own"), such as ["train.epochs=2", "model.max_length=800"].
        validation: validation rows as (texts, labels), or the share of rows to hold out; None for the preset's share.
        out: the checkpoint folder to write, with the run's state next to it; if None, everything stays in memory.
        overwrite: replace the checkpoint in `out`, or the saved state of an interrupted run.
        seed: of the choice of held-out rows, initial weights, order of rows and dropout.
        progress: whether to show progress, and notes on the rows, on standard error.

    Raises:
        TypeError: a text is not a string or a label is not hashable; the message gives the row, counted from 0.
        ValueError: the numbers of texts and labels differ, or `minutes` or `test` is combined with arguments for a
            preset.
        DataError: a row has no text or no label, there are fewer than two classes, or (with a preset) a class has a
            single row.
        ConfigError: there is no such preset or setting, or a value is not allowed.
        CheckpointError: `init` cannot be loaded.
        TrainingError: `out` exists or cannot be written, `init` is a classifier, or the loss is not finite.
    """
    from txcls.training.from_python import train_by_preset, train_by_recipe

    if preset is None and not settings and validation is None and init is None:
        return Classifier(
            train_by_recipe(
                texts, labels, minutes=minutes, test=test, out=out, overwrite=overwrite, seed=seed, progress=progress
            )
        )
    if minutes is not None or test is not None:
        raise ValueError(
            "minutes and test cannot be combined with preset, settings, validation or init; leave these or those out"
        )
    return Classifier(
        train_by_preset(
            texts,
            labels,
            init=init,
            preset="own" if preset is None else preset,
            settings=settings,
            validation=validation,
            out=out,
            overwrite=overwrite,
            seed=seed,
            progress=progress,
        )
    )
