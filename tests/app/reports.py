"""A tiny untrained model of match reports, with made-up measurements in which every verdict occurs once."""

from itertools import islice
from pathlib import Path

import torch

from tests.conftest import FITTED, add_noise, tiny_config
from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.config import RunConfig
from txcls.data.generated.who_won import TEAMS, MatchReport, reports, split_of
from txcls.data.types import SplitName
from txcls.inspection.heads import (
    KINDS,
    MAX_DISTANCE,
    Effect,
    HeadMeasurements,
    HeadRecord,
    HeadsRecord,
    Restored,
    Worth,
)
from txcls.model import TextClassifier
from txcls.text.tokenizer import Tokenizer

REPORT = "Rovers beat City yesterday."


def first_reports(split: SplitName, n: int) -> list[MatchReport]:
    """The first n reports of a split; generates only as many as needed."""
    return list(islice((report for report in reports() if split_of(report) == split), n))


def effect(lost: float, kl: float = 0.5) -> Effect:
    return Effect(kl, 0.9 * kl, 1.1 * kl, lost, round(lost - 0.004, 6), round(lost + 0.003, 6))


def restored(share: float, *, control: float = -0.1) -> Restored:
    return Restored(share, share - 0.03, share + 0.03, share - 0.05, control, share - control - 0.05, 0.002)


def head(lost: tuple[float, float], *, shares: tuple[float, float, float], kl: float = 0.5) -> HeadRecord:
    """A record with these points lost (averaged, resampled), and shares kept by distance, by word and by both."""
    distances = [0.02] * (2 * MAX_DISTANCE + 1)
    distances[MAX_DISTANCE - 1] = 0.68
    return HeadRecord(
        mean=effect(lost[0], kl), resampled=effect(lost[1], kl), uniform=effect(lost[0] / 2, kl),
        tables=dict(zip(KINDS, map(restored, shares), strict=True)), distances=tuple(distances),
        words=(("beat", 9.0), ("lost", 7.5), ("to", 2.0)),
    )  # fmt: skip


def measurements() -> HeadMeasurements:
    """Two layers with two heads each; head 2.2 has the highest worth."""
    heads = (
        head((0.5, 0.6), shares=(0.95, 0.1, 0.96)),  # confirmed, by distance
        head((0.01, 0.02), shares=(0.1, 0.6, 0.6)),  # in part, by word
        head((0.0, 0.0), shares=(0.1, 0.1, 0.2), kl=0.001),  # hardly matters
        head((0.76, 0.9), shares=(0.1, 0.1, 0.3)),  # no rule
    )
    together = HeadsRecord(heads[0].mean, heads[0].resampled, heads[0].uniform, heads[0].tables)
    feed_forward = Worth(effect(0.1), effect(0.2))
    return HeadMeasurements("test", 40, 30, 1.0, heads, (feed_forward,) * 2, (together,) * 2, together)


def save_reports_model(path: Path, *, measured: bool = True, dataset: str = "who_won") -> Checkpoint:
    """Save and return a model of match reports; without measurements of its heads unless `measured`."""
    values = tiny_config(pooling="class_token", max_length=40).model_dump()
    config = RunConfig.model_validate({**values, "data": {"dataset": dataset}})
    texts = [report.text for report in first_reports("train", 40)]
    tokenizer = Tokenizer.fit(texts, config.text, max_length=40, class_token=True)
    torch.manual_seed(0)
    network = TextClassifier(config.model, vocab_size=tokenizer.vocab_size, n_classes=len(TEAMS))
    add_noise(network, 0.1)
    checkpoint = Checkpoint(path, config, tokenizer, TEAMS, network, FITTED, {"training": {"seed": 0}}, [{"epoch": 1}])
    save_checkpoint(checkpoint.with_metrics(heads=measurements().to_dict()) if measured else checkpoint)
    return load_checkpoint(path)
