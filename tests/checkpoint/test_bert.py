"""Small random BERT and DistilBERT folders written by transformers give the same tokens and logits in txcls."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from tests.bert import vocabulary, write_bert
from tests.text.strategies import PIECES
from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.hugging_face import load_bert
from txcls.checkpoint.load import load_checkpoint
from txcls.errors import CheckpointError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TEXTS = (
    "The cat sat on the mat.", "Playing happily, they WON the match! Café 狗狗 İstanbul", "unhappiness " * 30,
    "a", "x" * 101, "[MASK] and [SEP] typed, [UNK] [CLS]",
)  # fmt: skip
KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("bert", {}),
    ("bert", {"num_labels": 2, "id2label": {0: "no", 1: "yes"}, "label2id": {"no": 0, "yes": 1}, "hidden_act": "relu"}),
    ("bert", {"layer_norm_eps": 1e-5, "type_vocab_size": 1, "hidden_act": "gelu_new", "num_hidden_layers": 1}),
    ("distilbert", {}),
    ("distilbert", {"activation": "relu", "n_layers": 3, "sinusoidal_pos_embds": True}),
)


def pieces_of(folder: Path) -> "PreTrainedTokenizerBase":
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)  # type: ignore[no-any-return]


def tokens_of(tokenizer: "PreTrainedTokenizerBase", text: str) -> list[str]:
    ids = tokenizer(text, truncation=True, max_length=40)["input_ids"]
    return tokenizer.convert_ids_to_tokens(ids)  # type: ignore[no-any-return]


def our_tokens(checkpoint: Checkpoint, text: str) -> list[str]:
    tokenizer = checkpoint.tokenizer
    return [tokenizer.vocabulary.token_of(token.id) for token in tokenizer.encode(text).tokens]


@pytest.mark.parametrize("kind, config", KINDS, ids=[f"{kind} {config}" for kind, config in KINDS])
def test_logits_and_tokens_equal_the_originals(tmp_path: Path, kind: str, config: dict[str, Any]) -> None:
    theirs = write_bert(tmp_path / "published", kind, **config)
    save_checkpoint(load_bert(tmp_path / "published"), tmp_path / "ours")
    checkpoint, tokenizer = load_checkpoint(tmp_path / "ours"), pieces_of(tmp_path / "published")
    assert checkpoint.classes == tuple(theirs.config.id2label.values())
    for text in TEXTS:
        given_ids = tokenizer(text, truncation=True, max_length=40, return_tensors="pt")
        assert our_tokens(checkpoint, text) == tokens_of(tokenizer, text)
        with torch.inference_mode():
            ours = checkpoint.model(torch.tensor([checkpoint.tokenizer.encode(text).ids]))
            torch.testing.assert_close(ours, theirs(**given_ids).logits, atol=1e-5, rtol=1e-5)


def test_a_batch_of_padded_texts_has_the_original_logits(tmp_path: Path) -> None:
    theirs = write_bert(tmp_path)
    checkpoint, tokenizer = load_bert(tmp_path), pieces_of(tmp_path)
    rows = [checkpoint.tokenizer.encode(text).ids for text in TEXTS]
    ids = torch.tensor([[*row, *[0] * (40 - len(row))] for row in rows])
    batch = tokenizer(list(TEXTS), truncation=True, max_length=40, padding="max_length", return_tensors="pt")
    with torch.inference_mode():
        torch.testing.assert_close(checkpoint.model(ids), theirs(**batch).logits, atol=1e-5, rtol=1e-5)


CASES = {
    "uncased": {},
    "cased": {"do_lower_case": False},
    "uncased with accents": {"strip_accents": False},
    "cased without accents": {"do_lower_case": False, "strip_accents": True},
    "Chinese in words": {"tokenize_chinese_chars": False},
}


@pytest.fixture(scope="module", params=CASES)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "tuple[Checkpoint, PreTrainedTokenizerBase]":
    folder = tmp_path_factory.mktemp("bert")
    write_bert(folder, tokenizer=CASES[request.param])
    return load_bert(folder), pieces_of(folder)


unicode_texts = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60),
    st.lists(
        st.sampled_from([*(piece for piece in PIECES if piece.isprintable()), *vocabulary()[11:], "[SEP]", "[sep]"]),
        max_size=25,
    ).map("".join),
)


@settings(max_examples=300, deadline=None)
@given(text=unicode_texts)
def test_tokens_of_any_text_equal_the_originals(pair: "tuple[Checkpoint, PreTrainedTokenizerBase]", text: str) -> None:
    checkpoint, theirs = pair
    assert our_tokens(checkpoint, text) == tokens_of(theirs, text)
    encoding = checkpoint.tokenizer.encode(text)
    assert checkpoint.tokenizer.encode_ids([text])[0].tolist() == encoding.ids
    ends = [token for token in encoding.tokens if token.is_special]
    assert [token.text for token in ends] == ["[CLS]", "[SEP]"]
    starts = [token.start for token in encoding.tokens if not token.is_special]
    assert starts == sorted(starts)


def test_a_lone_surrogate_and_a_typed_pad_are_read_like_any_text(
    pair: "tuple[Checkpoint, PreTrainedTokenizerBase]",
) -> None:
    checkpoint, _ = pair
    assert our_tokens(checkpoint, "a\ud800b") == our_tokens(checkpoint, "ab")
    assert checkpoint.tokenizer.encode("a [PAD] b").ids.count(0) == 0


def test_a_long_text_is_cut_where_the_original_cuts_it(pair: "tuple[Checkpoint, PreTrainedTokenizerBase]") -> None:
    checkpoint, theirs = pair
    for text in ("the cat, " * 20_000, "x" * 40_000 + " cat", " " * 50_000 + "the cat"):
        assert our_tokens(checkpoint, text) == tokens_of(theirs, text)


def test_vocab_txt_alone_gives_the_same_tokens(tmp_path: Path) -> None:
    write_bert(tmp_path, tokenizer={"do_lower_case": False})
    with_json = load_bert(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    assert [our_tokens(load_bert(tmp_path), text) for text in TEXTS] == [our_tokens(with_json, text) for text in TEXTS]


def test_the_old_names_of_norms_and_a_vocabulary_padded_to_a_multiple_are_read(tmp_path: Path) -> None:
    write_bert(tmp_path)
    before = load_bert(tmp_path).model(torch.tensor([[3, 20, 21, 4]]))
    weights = load_file(tmp_path / "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): weight
        for name, weight in weights.items()
    }
    words = "bert.embeddings.word_embeddings.weight"
    renamed[words] = torch.cat([renamed[words], torch.ones(5, 24)])
    save_file(renamed, tmp_path / "model.safetensors")
    torch.testing.assert_close(load_bert(tmp_path).model(torch.tensor([[3, 20, 21, 4]])), before)


def set_json(file: str, **changes: object) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        values = json.loads((folder / file).read_text())
        for path, value in changes.items():
            *outer, last = path.split("__")
            inner = values
            for key in outer:
                inner = inner[key]
            inner[last] = value
        (folder / file).write_text(json.dumps(values))

    return change


def set_weight(name: str, shape: tuple[int, ...] | None) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        weights.pop(name, None)
        save_file(weights | ({} if shape is None else {name: torch.zeros(shape)}), folder / "model.safetensors")

    return change


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def only_vocabulary(text: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").write_text(text)

    return change


CONFIG, TOKENIZER, EXTRA = "config.json", "tokenizer.json", "tokenizer_config.json"


@pytest.mark.parametrize(
    "damage, message",
    [
        (pickled, "pytorch_model.bin is refused, since it can run code when it is read; if you trust it"),
        (shutil.rmtree, "lacks model.safetensors; expected the whole folder of a published model"),
        (lambda folder: (folder / CONFIG).unlink(), "config.json: missing"),
        (lambda folder: [(folder / name).unlink() for name in ("vocab.txt", TOKENIZER)], "vocab.txt: missing"),
        (set_json(CONFIG, model_type="roberta"), "model_type is 'roberta', which is not supported; expected 'bert'"),
        (set_json(CONFIG, architectures=["BertForMaskedLM"]), "expected ['BertForSequenceClassification'] or None"),
        (set_json(CONFIG, problem_type="multi_label_classification"), "problem_type is 'multi_label_classification'"),
        (set_json(CONFIG, use_flux_capacitor=1), "'use_flux_capacitor' is not a setting of BertForSequenceClassif"),
        (set_json(CONFIG, hidden_act="swish"), "hidden_act is 'swish'"),
        (set_json(CONFIG, num_attention_heads=5), "d_model: 24 is not divisible by n_heads = 5"),
        (set_json(CONFIG, num_hidden_layers=3), "lacks bert.encoder.layer.2."),
        (set_json(CONFIG, num_hidden_layers=1), "holds unknown bert.encoder.layer.1.attention"),
        (set_json(CONFIG, hidden_size=None), "model.d_model: input should be a valid integer"),
        (set_json(CONFIG, id2label={"0": "one", "2": "two"}), "expected at least two class names, got ['one', None]"),
        (set_json(CONFIG, id2label={"0": "a", "1": "a", "2": "b"}), "id2label: a class name occurs twice"),
        (set_json(CONFIG, id2label={"0": "score"}), "id2label: expected at least two class names, got ['score']"),
        (lambda folder: (folder / CONFIG).write_text("{"), "not readable as JSON"),
        (set_weight("classifier.bias", (1,)), "head.bias is (1,), expected (3,)"),
        (set_weight("bert.pooler.dense.weight", (24, 23)), "pool.dense.weight is (24, 23), expected (24, 24)"),
        (set_weight("bert.extra", (2,)), "holds unknown bert.extra"),
        (set_weight("bert.embeddings.word_embeddings.weight", (9, 24)), "it has vectors for 9 tokens; the vocabulary"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99), "not a complete safetensors file"),
        (set_json(EXTRA, do_lower_case=False), "tokenizer_config.json: unlike tokenizer.json, lowercase is False"),
        (set_json(EXTRA, do_basic_tokenize=False), "do_basic_tokenize is False"),
        (set_json(EXTRA, sep_token="</s>"), "sep_token is '</s>', which is not supported"),
        (set_json(TOKENIZER, model__type="BPE"), "model.type is 'BPE', which is not supported; expected 'WordPiece'"),
        (set_json(TOKENIZER, model__vocab={"a": 0, "b": 2}), "model.vocab: expected tokens with the ids 0, 1, 2"),
        (set_json(TOKENIZER, normalizer=None), "normalizer.type is None"),
        (set_json(TOKENIZER, normalizer__clean_text=False), "normalizer.clean_text is False"),
        (set_json(TOKENIZER, post_processor__single=[]), "post_processor.single is [], which is not supported"),
        (set_json(TOKENIZER, added_tokens=[{"content": "[USER]"}]), "added token 0 is '[USER]', which"),
        (only_vocabulary("[PAD]\n[UNK]\na\n"), "its vocabulary has a token twice, or lacks one of [PAD]"),
    ],
)  # fmt: skip
def test_a_folder_that_is_not_supported_is_refused_by_name(
    published: Path, tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    shutil.copytree(published, tmp_path / "copy")
    damage(tmp_path / "copy")
    with pytest.raises(CheckpointError) as caught:
        load_bert(tmp_path / "copy")
    assert message in str(caught.value)
    assert str(caught.value).isprintable() and len(str(caught.value)) <= 1000


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    write_bert(folder)
    return folder


def test_weights_are_kept_as_they_are_also_when_the_checkpoint_is_saved_again(published: Path, tmp_path: Path) -> None:
    path = save_checkpoint(load_bert(published), tmp_path / "ours")
    first = load_file(path / "model.safetensors")
    save_checkpoint(load_checkpoint(path).with_metrics(training={"seed": 0}))
    second = load_file(path / "model.safetensors")
    assert first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
    theirs = load_file(published / "model.safetensors")
    assert torch.equal(first["layers.1.ff.expand.weight"], theirs["bert.encoder.layer.1.intermediate.dense.weight"])
