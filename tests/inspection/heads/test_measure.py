import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from tests.conftest import tiny_config
from tests.inspection.plain import Site, plain_forward
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.batches import TokenisedTexts
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import measure_means
from txcls.inspection.heads import KINDS, MAX_DISTANCE, HeadMeasurements
from txcls.inspection.heads.measure import measure, measure_restored
from txcls.inspection.heads.tables import FittedTables, Tables, fit_tables
from txcls.model import TextClassifier
from txcls.text.tokenizer import Tokenizer

WORDS = ["red", "green", "blue", "one", "two", "three", "four", "five"]
CLASSES = ("a", "b", "c")


@pytest.fixture(scope="module")
def classifier() -> Predictor:
    torch.manual_seed(0)
    config = tiny_config(
        d_model=16, n_heads=2, n_layers=2, d_ff=24, max_length=16, positions="learned", pooling="class_token"
    )
    tokenizer = Tokenizer.fit([" ".join(WORDS)], config.text, max_length=16, class_token=True)
    model = TextClassifier(config.model, vocab_size=tokenizer.vocab_size, n_classes=len(CLASSES)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.6 * torch.randn_like(parameter))
    return Predictor(Checkpoint(Path("random"), config, tokenizer, CLASSES, model))


@pytest.fixture(scope="module")
def texts(classifier: Predictor) -> TokenisedTexts:
    random = np.random.default_rng(1)
    rows = [" ".join(random.choice(WORDS, size=random.integers(3, 12))) for _ in range(30)]
    ids = [np.array(classifier.tokenizer.encode(row).ids, dtype=np.int32) for row in rows]
    return TokenisedTexts.of(ids, random.integers(0, len(CLASSES), size=len(rows)))


@pytest.fixture(scope="module")
def fitted(classifier: Predictor, texts: TokenisedTexts) -> FittedTables:
    return fit_tables(classifier, texts)


def probabilities(
    classifier: Predictor, ids: list[int], site: tuple[int, int], pattern: np.ndarray | None
) -> np.ndarray:
    """The class probabilities of one text with a pattern in place of that of the head at `site`, (layer, head)."""

    def substitute(name: Site, value: torch.Tensor) -> torch.Tensor:
        if pattern is not None and name == ("patterns", site[0]):
            value[site[1]] = torch.from_numpy(pattern)
        return value

    return plain_forward(classifier, ids, substitute).softmax(-1).numpy()


def table_pattern(words: np.ndarray, distances: np.ndarray, ids: list[int]) -> np.ndarray:
    n = len(ids)
    weights = np.array(
        [
            [math.exp(words[ids[key]] + distances[min(max(key - query, -8), 8) + 8]) for key in range(n)]
            for query in range(n)
        ]
    )
    return weights / weights.sum(axis=1, keepdims=True)


def test_effects_and_shares_match_an_independent_forward_pass(
    classifier: Predictor, texts: TokenisedTexts, fitted: FittedTables
) -> None:
    means = measure_means(classifier, [" ".join(WORDS)], split="validation")
    measured = measure(classifier, texts, fitted, means)
    layer, head = 1, 0
    number = layer * 2 + head
    divergences: dict[str, list[float]] = {"uniform": [], **{kind: [] for kind in KINDS}}
    for n in range(len(texts)):
        ids = texts[n].tolist()
        own = probabilities(classifier, ids, (layer, head), None)
        for name, of_text in divergences.items():
            tables = None if name == "uniform" else fitted.of_kind[name]
            words = np.zeros(100) if tables is None else tables.words[number].numpy()
            distances = np.zeros(17) if tables is None else tables.distances[number].numpy()
            replaced = table_pattern(words, distances, ids)
            changed = probabilities(classifier, ids, (layer, head), replaced)
            of_text.append(float(entropy(own, changed)))
    record = measured.head(layer, head)
    assert record.uniform.kl == pytest.approx(np.mean(divergences["uniform"]), rel=1e-3)
    for kind in KINDS:
        expected = 1 - np.mean(divergences[kind]) / np.mean(divergences["uniform"])
        assert record.tables[kind].share == pytest.approx(expected, abs=2e-3)
        assert record.tables[kind].least <= record.tables[kind].low <= record.tables[kind].share


def test_the_interval_of_a_share_is_that_of_a_bootstrap_over_texts() -> None:
    random = np.random.default_rng(2)
    uniform = random.gamma(2.0, size=800)
    table = uniform * random.uniform(0.0, 0.5, size=800)
    result = measure_restored(uniform, table, uniform, n_tests=1, lost=0.0)
    rows = random.integers(0, 800, size=(4000, 800))
    samples = 1 - table[rows].mean(axis=1) / uniform[rows].mean(axis=1)
    assert (result.low, result.high) == pytest.approx(tuple(np.quantile(samples, (0.025, 0.975))), abs=0.004)
    assert result.least == pytest.approx(result.low, abs=1e-3), "a single test needs no correction"
    assert measure_restored(uniform, table, uniform, n_tests=48, lost=0.0).least < result.low
    assert result.control == pytest.approx(0.0, abs=1e-9), "a control as bad as uniform attention restores nothing"
    nothing = measure_restored(np.zeros(10), np.zeros(10), np.zeros(10), n_tests=3, lost=0.0)
    assert (nothing.share, nothing.least, nothing.verdict) == (0.0, 0.0, None), "a head without any effect"


def test_the_means_and_another_texts_output_are_put_in_place(
    classifier: Predictor, texts: TokenisedTexts, fitted: FittedTables
) -> None:
    """Worths, against edits written out for each text; all texts have one length, so batches and donors are known."""
    model = classifier.checkpoint.model
    same = texts.truncate(4)
    means = measure_means(classifier, [" ".join(WORDS), "red red one"], split="validation")
    measured = measure(classifier, same, fitted, means, seed=3)
    ids = torch.tensor([same[n].tolist() for n in range(len(same))])
    z: list[torch.Tensor] = []
    hook = model.layers[0].attn.z.register_forward_hook(lambda module, given, out: z.append(out.clone()))
    with torch.inference_mode():
        own = model(ids).softmax(-1)
    hook.remove()
    random = np.random.default_rng(3)
    for kind in KINDS:  # the draws for the controls come first
        for _ in range(2):
            fitted.of_kind[kind].shuffle(fitted.counts, random)
    shift = int(random.integers(1, len(same)))
    for other, effect in (
        (torch.from_numpy(means.taps["layers.0.attn.z"])[None, :, None].expand(z[0].shape), measured.head(0, 1).mean),
        (z[0].roll(-shift, dims=0), measured.head(0, 1).resampled),
    ):
        replaced = torch.cat([z[0][:, :1], other[:, 1:]], dim=1)
        hook = model.layers[0].attn.z.register_forward_hook(lambda module, given, out, new=replaced: new)
        with torch.inference_mode():
            changed = model(ids).softmax(-1)
        hook.remove()
        assert effect.kl == pytest.approx(float(np.mean(entropy(own, changed, axis=1))), rel=1e-3)
        lost = (own.argmax(-1).numpy() == same.labels).mean() - (changed.argmax(-1).numpy() == same.labels).mean()
        assert effect.lost == pytest.approx(lost)


def test_tables_reproduce_attention_that_follows_them(
    classifier: Predictor, texts: TokenisedTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fitted to the patterns of known tables, the tables of kind "both" give these patterns back."""
    monkeypatch.setattr("txcls.inspection.heads.tables.PRIOR", 1e-3)
    monkeypatch.setattr("txcls.inspection.heads.tables.ROUNDS", 60)
    random = np.random.default_rng(4)
    n_words = classifier.tokenizer.vocab_size
    true = Tables(
        torch.from_numpy(random.normal(0, 1, size=(4, n_words))).float(),
        torch.from_numpy(random.normal(0, 1, size=(4, 2 * MAX_DISTANCE + 1))).float(),
    )

    class Planted(Predictor):
        """Replaces every attention pattern before it is recorded."""

        def logits(self, ids: torch.Tensor) -> torch.Tensor:
            model = self.checkpoint.model
            hooks = [
                layer.attn.scores.register_forward_hook(
                    lambda module, given, out, layer=number: true.scores(ids, [2 * layer, 2 * layer + 1]).masked_fill(
                        out.isinf(), -torch.inf
                    )
                )
                for number, layer in enumerate(model.layers)
            ]
            try:
                return super().logits(ids)
            finally:
                for hook in hooks:
                    hook.remove()

    both = fit_tables(Planted(classifier.checkpoint), texts).of_kind["both"]
    ids = torch.from_numpy(texts[0].astype(np.int64))[None]
    expected, found = (tables.scores(ids, range(4)).softmax(-1) for tables in (true, both))
    assert float((expected - found).abs().max()) < 0.08
    assert float((expected - 1 / ids.shape[1]).abs().max()) > 0.3, "the planted patterns are far from uniform"


def test_the_control_shuffles_words_only_among_those_of_similar_frequency() -> None:
    tables = Tables(torch.arange(8.0)[None], torch.arange(17.0)[None])
    counts = torch.tensor([100, 120, 90, 100, 1, 1, 1, 1])
    shuffled = tables.shuffle(counts, np.random.default_rng(0))
    assert sorted(shuffled.words[0, :4].tolist()) == [0.0, 1.0, 2.0, 3.0]
    assert shuffled.words.tolist() != tables.words.tolist()
    assert sorted(shuffled.distances[0].tolist()) == tables.distances[0].tolist() != shuffled.distances[0].tolist()


def test_measurements_are_stored_and_read_again(
    classifier: Predictor, texts: TokenisedTexts, fitted: FittedTables
) -> None:
    means = measure_means(classifier, [" ".join(WORDS)], split="validation")
    measured = measure(classifier, texts, fitted, means)
    stored = classifier.checkpoint.with_metrics(heads=measured.to_dict())
    read = HeadMeasurements.of(Predictor(stored))
    assert read is not None and read.n == measured.n
    assert read.head(1, 1).tables["both"].share == pytest.approx(measured.head(1, 1).tables["both"].share, rel=1e-3)
    assert HeadMeasurements.of(classifier) is None
    one_missing = {**measured.to_dict(), "heads": measured.to_dict()["heads"][1:]}
    assert HeadMeasurements.of(Predictor(classifier.checkpoint.with_metrics(heads=one_missing))) is None
