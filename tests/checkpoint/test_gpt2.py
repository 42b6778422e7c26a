"""A tiny, randomly initialised GPT-2 folder written by transformers gives the same outputs in txcls."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from tests.conftest import add_noise
from txcls.checkpoint.folders import GPT2_FILES
from txcls.checkpoint.hugging_face import load_gpt2
from txcls.checkpoint.listing import checkpoint_names
from txcls.errors import CheckpointError
from txcls.inference.generation import Sampling, TextModel, generate
from txcls.inspection.language_model import measure_surprisal

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel

TEXTS = ["the cat sat on the mat", "a dog — naïve, 狗! — ran", "the end of the 2nd day"] * 20


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> "tuple[Path, GPT2LMHeadModel]":
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel

    folder = tmp_path_factory.mktemp("gpt2")
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(TEXTS, vocab_size=300, show_progress=False)
    tokenizer.save_model(str(folder))
    torch.manual_seed(0)
    size = {"vocab_size": tokenizer.get_vocab_size(), "n_positions": 64, "n_embd": 32, "n_layer": 3, "n_head": 4}
    config = GPT2Config(**size, bos_token_id=0, eos_token_id=0)
    theirs = GPT2LMHeadModel(config).eval()
    add_noise(theirs, 0.1)
    theirs.save_pretrained(folder)
    return folder, theirs


def test_logits_equal_the_originals(gpt2: "tuple[Path, GPT2LMHeadModel]") -> None:
    folder, theirs = gpt2
    ours = load_gpt2(folder)[0]
    ids = torch.randint(0, 256, (3, 40))
    ids[0, 3] = 0  # an ordinary token in GPT-2, although 0 is padding elsewhere in txcls
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-4, rtol=1e-4)


def test_the_greedy_continuation_is_the_originals(gpt2: "tuple[Path, GPT2LMHeadModel]") -> None:
    folder, theirs = gpt2
    ours, tokenizer = load_gpt2(folder)
    prompt = tokenizer.encode("the cat ran").ids
    with torch.no_grad():
        row = torch.tensor([prompt])
        for _ in range(20):  # plain greedy decoding
            row = torch.cat([row, theirs(row).logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    steps = generate(ours, prompt, n=20, sampling=Sampling(temperature=0.0))
    assert [step.id for step in steps] == row[0, len(prompt) :].tolist()


@pytest.mark.parametrize("text", [*TEXTS[:3], "", "  two  spaces\n", "🙂"])
def test_text_survives_the_tokenizer(gpt2: "tuple[Path, GPT2LMHeadModel]", text: str) -> None:
    tokenizer = load_gpt2(gpt2[0])[1]
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_a_published_folder_is_a_language_model_like_any_other(
    gpt2: "tuple[Path, GPT2LMHeadModel]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(gpt2[0].parent))
    assert gpt2[0].name in checkpoint_names(language_models=True) and checkpoint_names() == ()
    model, theirs = TextModel.load(gpt2[0].name), gpt2[1]
    text = "the cat — naïve, 狗! — ran"
    read = model.read(text)
    assert read.ids == model.encode(text) == load_gpt2(gpt2[0])[1].encode(text).ids
    assert "".join(text[t.start : t.end] for t in read.tokens if t.start >= 15)[-6:] == " — ran"
    with torch.no_grad():
        loss = theirs(torch.tensor([read.ids]), labels=torch.tensor([read.ids])).loss
    assert measure_surprisal(model, read.ids).perplexity == pytest.approx(float(loss.exp()), rel=1e-4)
    assert model.appended_text(read.ids, model.encode(" the cat")) == " the cat"
    assert model.start == () and model.encode("") == [], "this vocabulary has no token between texts"


@pytest.mark.parametrize("text", ["the cat " * 40, "the cat " * 40_000, "狗" * 50_000])
def test_a_published_models_maximum_length_is_its_number_of_positions(
    gpt2: "tuple[Path, GPT2LMHeadModel]", text: str
) -> None:
    model = TextModel.load(gpt2[0])
    read = model.read(text)
    assert len(read.tokens) == 64 and read.truncated_at is not None
    assert read.ids == load_gpt2(gpt2[0])[1].encode(text[:2000]).ids[:64]


def set_config(**changes: object) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        values = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**values, **changes}))

    return change


@pytest.mark.parametrize(
    "damage, message",
    [
        *(((lambda folder, name=name: (folder / name).unlink()), f"{name}: ") for name in GPT2_FILES),
        (set_config(model_type="bert"), "model_type is 'bert', which is not supported; expected 'gpt2'"),
        (set_config(scale_attn_weights=False), "scale_attn_weights is False, which is not supported"),
        (set_config(n_layer=4), "lacks h.3."),
        (set_config(n_positions=65), "embeddings.positional is (64, 32), expected (65, 32)"),
        (set_config(n_embd=None), "model.d_model: input should be a valid integer"),
        (set_config(model_type="x\x1b[2J" * 1000), r"model_type is 'x\x1b[2J"),
        (lambda folder: (folder / "vocab.json").write_text('{"a": 4000000000}'), "expected an id from 0 to 29"),
        (lambda folder: (folder / "merges.txt").write_text("x y\n"), "do not make a tokenizer"),
        (lambda folder: (folder / "vocab.json").write_text("[]"), "vocab.json: expected a JSON dict, got list"),
    ],
)
def test_a_folder_that_is_no_gpt2_is_refused_by_name(
    gpt2: "tuple[Path, GPT2LMHeadModel]", tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    for name in GPT2_FILES:
        (tmp_path / name).write_bytes((gpt2[0] / name).read_bytes())
    damage(tmp_path)
    with pytest.raises(CheckpointError) as caught:
        load_gpt2(tmp_path)
    assert message in str(caught.value)
    assert str(caught.value).isprintable() and len(str(caught.value)) <= 1000
