"""A tiny untrained model of match reports, with a made-up atlas in which every verdict occurs once."""

from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import torch

from tests.conftest import FITTED, add_noise, tiny_config
from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.config import RunConfig
from txcls.data.generated.who_won import TEAMS, first_reports
from txcls.inspection.ablation_on_rows import ChangedRows
from txcls.inspection.stories import AllHeads, Clause, HeadAtlas, HeadRecord, KindsTable, MeasuredStory, Story
from txcls.inspection.stories.kinds import NAMED
from txcls.model import TextClassifier
from txcls.text.tokenizer import Tokenizer

REPORT = "Rovers beat City yesterday."
CONFIRMED = MeasuredStory(
    story=Story(1, 1, (Clause("class token", NAMED),)), n=40, coverage=1.0, accuracy=1.0, uniform=0.24, restored=1.0,
    control=0.17, share=1.0, interval=(0.9, 1.0), control_share=-0.09, attention=(0.99,), chance=(0.06,),
)  # fmt: skip
PART = replace(CONFIRMED, story=Story(0, 0, (Clause("verb", "itself"),)), share=0.5, interval=(0.4, 0.6))
WRONG = replace(CONFIRMED, story=Story(0, 1, (Clause("first team", "marker"),)), share=-0.2, interval=(-0.4, 0.1))
CLEAR = replace(
    CONFIRMED, story=Story(1, 0, (Clause("other team", NAMED),)), uniform=1.0, share=nan, interval=(nan, nan),
    control_share=nan,
)  # fmt: skip
WORTH = (0.5, 0.01, 0.0, 0.76)


def atlas() -> HeadAtlas:
    """An atlas of two layers with two heads each; head 2.2 has the highest worth."""
    kinds = ("class token", NAMED)
    attention = np.linspace(0.1, 0.9, 16).round(4).reshape(2, 2, 2, 2)
    entropy = np.array([[0.5, 0.6], [0.7, 0.4]])
    table = KindsTable(kinds, kinds, np.ones((2, 2)), np.full((2, 2), 0.1), attention, entropy)
    heads = [
        HeadRecord(
            {"zero": worth / 2, "mean": worth, "uniform": worth / 4}, measured,
            ChangedRows(round(40 * worth), 0, round(worth - 0.004, 6), round(worth + 0.003, 6)),
        )
        for worth, measured in zip(WORTH, (PART, WRONG, CLEAR, CONFIRMED), strict=True)
    ]  # fmt: skip
    all_heads = AllHeads(
        40, 1.0, 0.3, 0.4, 0.2, 0.9, share=0.14, interval=(0.1, 0.2), control_share=-0.14, control_range=(0.1, 0.3)
    )
    return HeadAtlas("test", 40, 40, 10, table, tuple(heads), 0.02, all_heads)


def save_reports_model(path: Path, *, measured: bool = True, dataset: str = "who_won") -> Checkpoint:
    """Save and return a model of match reports; without an atlas unless `measured`."""
    values = tiny_config(pooling="class_token", max_length=40).model_dump()
    config = RunConfig.model_validate({**values, "data": {"dataset": dataset}})
    texts = [report.text for report in first_reports("train", 40)]
    tokenizer = Tokenizer.fit(texts, config.text, max_length=40, class_token=True)
    torch.manual_seed(0)
    network = TextClassifier(config.model, vocab_size=tokenizer.vocab_size, n_classes=len(TEAMS))
    add_noise(network, 0.1)
    checkpoint = Checkpoint(path, config, tokenizer, TEAMS, network, FITTED, {"training": {"seed": 0}}, [{"epoch": 1}])
    save_checkpoint(checkpoint.with_metrics(atlas=atlas().to_dict()) if measured else checkpoint)
    return load_checkpoint(path)
