"""All settings of a run, typed and validated: data, text processing, model and training.

A configuration has a name and four sections, with the same keys in a preset's TOML file, in a checkpoint's config.json
and in `--set section.key=value`. Unknown keys are errors, and all problems are reported at once, each with its field.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from txcls.errors import ConfigError, did_you_mean

CleaningStep = Literal[
    "html_entities", "html_tags", "urls", "backslashes", "lowercase", "punctuation", "whitespace", "as_typed"
]
Precision = Literal["auto", "float32", "bfloat16"]
ScopeScore = Literal["max_probability", "energy", "standard_score"]

Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
MAX_SNAPSHOTS = 200
MAX_SINUSOIDS = 2**23
"""Maximum size of the table of sinusoidal positions, T times D, so that an untrusted config cannot take gigabytes."""


class Section(BaseModel):
    """A section of settings: immutable, without unknown keys, and documented by the string under each field."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False, protected_namespaces=()
    )

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], *, source: str) -> Self:
        """Validate (nested) settings; messages start with `source` (a file or a preset's name).

        Raises:
            ConfigError: unknown keys, wrong types, or values out of range or in conflict; one message lists them all.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ConfigError(f"{source}: {_explain(error)}") from None


class ModelConfig(Section):
    """The settings of `txcls.model.TextClassifier`; the sizes of the vocabulary and of the head come from the data."""

    d_model: int = Field(128, ge=1, le=16384)
    """D: width of the residual stream."""
    n_heads: int = Field(4, ge=1, le=256)
    """H: number of attention heads per layer; the width of each is E = d_model / n_heads."""
    n_layers: int = Field(2, ge=1, le=128)
    """L: number of layers (Transformer blocks)."""
    d_embedding: int | None = Field(None, ge=1, le=8192)
    """Width of the token embeddings; None for d_model. Otherwise they are projected to d_model."""
    d_ff: int = Field(512, ge=1, le=65536)
    """F: hidden width of the feed-forward block."""
    max_length: int = Field(128, ge=1, le=8192)
    """Maximum number of tokens, including the class token; longer texts are truncated (and shown as truncated)."""
    positions: Literal["sinusoidal", "learned", "none"] = "sinusoidal"
    """Position vectors: fixed sines and cosines, a trained vector per position, or none."""
    scale_embeddings: bool = False
    """Multiply token embeddings by sqrt(d_model), as in Attention Is All You Need, section 3.4."""
    causal: bool = False
    """Let each token attend only to itself and to earlier tokens."""
    pooling: Literal["first", "class_token", "mean", "attention"] = "attention"
    """The vector that represents a text: the state of the first token or of an added class token, or the mean of all
    states, unweighted or with learned weights (attention)."""
    token_bias: bool = False
    """Language models: add a trained bias to each token's logit. It starts at the log of the token's frequency in the
    training texts, so that the embeddings need not encode token frequencies."""
    dropout: Fraction = 0.1
    """Dropout of embeddings and of each sub-layer's output, during training."""
    attention_dropout: Fraction = 0.0
    """Dropout of attention patterns, during training."""
    init: Literal["xavier", "normal", "default"] = "xavier"
    """Initialisation of matrices: Xavier uniform, normal with standard deviation 0.02, or torch's defaults."""

    # Only for the reference systems (presets reference_*.toml), GPT-2 (presets gpt*.toml) and models that are imported

    norm: Literal["pre", "post"] = "pre"
    """LayerNorm before each sub-layer (and once more at the end), or after each addition as in the 2017 paper."""
    activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu"
    """The non-linearity of the feed-forward block; `gelu_tanh` is the approximation that GPT-2 was trained with."""
    qkv_bias: bool = True
    """Whether the query, key and value projections have biases."""
    output_bias: bool = True
    """Whether the output projection of attention has a bias."""
    mask_padding: bool = True
    """Exclude padding from attention and pooling; False to reproduce systems that do not, and for GPT-2, which has no
    padding token."""
    pool_padding: bool = False
    """Include padding in pooling; True to reproduce a system that masks padding only in attention."""
    fixed_length: bool = False
    """Pad every text to max_length; True to reproduce systems that do. It is slow and, without a mask, changes the
    result."""
    tie_output: bool = True
    """Language models: use the token embeddings as the output matrix (Press & Wolf 2017), or train a separate one."""
    norm_epsilon: float = Field(1e-5, gt=0.0, le=0.01)
    """The constant that LayerNorm adds to the variance; 1e-12 in BERT."""
    embedding_norm: bool = False
    """LayerNorm of the sum of token and position vectors, as in BERT."""
    pooler: Literal["none", "tanh", "relu"] = "none"
    """A linear map and a non-linearity between pooling and class head: tanh in BERT, relu in DistilBERT."""

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        problems = []
        if self.d_model % self.n_heads:
            problems.append(f"d_model: {self.d_model} is not divisible by n_heads = {self.n_heads}")
        if self.positions == "sinusoidal" and self.d_model % 2:
            problems.append(f"d_model: sinusoidal positions pair sines with cosines, so {self.d_model} must be even")
        if self.positions == "sinusoidal" and self.max_length * self.d_model > MAX_SINUSOIDS:
            problems.append(
                f"max_length: sinusoidal positions for {self.max_length:,} tokens and d_model = {self.d_model:,} are "
                f"{self.max_length * self.d_model:,} numbers; expected at most {MAX_SINUSOIDS:,}"
            )
        if self.pooling == "class_token" and self.max_length < 2:
            problems.append(f"max_length: {self.max_length} leaves no room for a token after the class token")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def adds_positions(self) -> bool:
        """Whether a vector for its position is added to each token vector."""
        return self.positions in ("sinusoidal", "learned")

    @property
    def reads_one_token(self) -> bool:
        """Whether pooling reads the first token alone."""
        return self.pooling in ("first", "class_token")

    @property
    def d_head(self) -> int:
        """E: width of an attention head."""
        return self.d_model // self.n_heads


class TextConfig(Section):
    """How text becomes token ids."""

    cleaning: tuple[CleaningStep, ...] = ("html_entities", "html_tags", "urls", "lowercase", "whitespace")
    """Names of cleaning steps, in the order of their execution (see txcls.text.cleaning)."""
    tokenizer: Literal["word", "whitespace", "basic_english", "bpe", "wordpiece"] = "word"
    """NLTK's Penn Treebank word tokens, or subwords from byte-pair encoding, learned from the training texts. Only for
    the reference systems: words separated by whitespace, or by a few punctuation marks (`basic_english`). Only for
    imported models: the subwords of a published BERT (`wordpiece`)."""
    max_vocabulary: int = Field(30_000, ge=5, le=10_000_000)
    """Maximum V, including the four special tokens; the vocabulary consists of the most frequent tokens, at most a
    million words or 400,000 byte pairs."""
    min_frequency: int = Field(2, ge=1)
    """Tokens that occur less often than this in the training texts become the unknown token."""


class DataConfig(Section):
    """The data set and its validation split. Training does not read the test split."""

    dataset: str = Field("sample", min_length=1)
    """A name that `txcls data list` shows, `table` for your own CSV, TSV, JSON Lines or Parquet file, or, for
    pre-training, `text` for your own plain text and `mixture` for the training texts of several data sets."""
    sources: tuple[str, ...] = ()
    """For `mixture`: the names of the data sets."""
    mixing: float = Field(1.0, ge=0.0, le=1.0)
    """For `mixture`: with 1, every text is read once per epoch; below 1, the texts of smaller sets are repeated about
    (size of the largest set / own size) ** (1 - mixing) times; with 0, all sets have the same weight."""
    text_column: str | None = None
    """For `table`: the text column, or several columns to join, as `subject + body`; None looks for a common name."""
    label_column: str | None = None
    """For `table`: the label column; None looks for a common name."""
    n_columns: int | None = None
    """For `table`: the number of columns, if the text or label column has only a number in the file, no name."""
    strip_html: bool = False
    """For `table`: read only the visible text of HTML."""
    label_names: tuple[tuple[str, str], ...] = ()
    """For `table`: pairs of a label and the one that it was merged into; "" leaves its rows out."""
    merge_labels: bool = False
    """For `table`: merge labels that seem to be spellings of one class, and leave out placeholders such as n/a."""
    sheet: str | None = None
    """For `table`: the workbook's sheet; None for the one with the most rows."""
    test_file: str | None = None
    """For `table`: name of the file with the test rows (`--test`); if None, they were held out of the same table."""
    unit: Literal["lines", "paragraphs", "documents"] = "lines"
    """For `text`: whether a text is a line, a paragraph (separated by blank lines), or a whole file."""
    validation_fraction: float = Field(0.1, gt=0.0, lt=1.0)
    """Share of the training rows held out for validation; not used if the data set has a validation split."""
    validation: Literal["hash", "stratified"] = "hash"
    """How these rows are chosen: by a hash of each row's text, so that equal texts are in the same split regardless of
    the other rows; or, as in earlier versions, at random among the rows of each class."""
    split_seed: int = Field(0, ge=0)
    """Seed of this split, independent of the training seed, so that runs with different seeds use the same rows."""

    # Only for the reference systems

    joiner: str = Field(" ", max_length=20)
    """For `huffpost`: the string between headline and description; it does not change the split."""

    @model_validator(mode="after")
    def _fits_dataset(self) -> Self:
        if self.dataset == "mixture" and not self.sources:
            raise ValueError('sources: expected the names of data sets, for example ["ag_news", "imdb"]')
        if self.dataset != "mixture" and self.sources:
            raise ValueError(f"sources: only for dataset = mixture, got dataset = {self.dataset}")
        if len(set(self.sources)) < len(self.sources):
            raise ValueError("sources: a data set is listed more than once")
        if self.joiner != " " and self.dataset != "huffpost":
            raise ValueError(f"joiner: only for dataset = huffpost, got dataset = {self.dataset}")
        if invalid := sorted({"table", "text", "mixture"} & set(self.sources)):
            raise ValueError(f"sources: expected data sets that `txcls data list` shows, got {', '.join(invalid)}")
        return self


class TrainConfig(Section):
    """How `txcls.training` fits a model."""

    epochs: int = Field(5, ge=1, le=10_000)
    """Number of passes over the training rows, unless training stops early."""
    min_steps: int = Field(0, ge=0)
    """Minimum number of optimiser steps; epochs are added to reach it, since small sets need more epochs."""
    batch_size: int = Field(64, ge=1, le=65536)
    """Rows per optimiser step; a batch consists of texts of similar length."""
    batch_tokens: int = Field(0, ge=0, le=1 << 24)
    """If not 0: tokens per optimiser step, including padding, instead of `batch_size`; batches of short texts then have
    more rows."""
    learning_rate: float = Field(1e-3, gt=0.0, le=10.0)
    """Peak learning rate."""
    layer_decay: float = Field(1.0, gt=0.0, le=1.0)
    """Learning rate of each layer relative to the layer above it, from the head down to the embeddings (Howard & Ruder
    2018); below 1, lower layers change less, since their pre-trained features are more general."""
    weight_decay: float = Field(0.01, ge=0.0, le=10.0)
    """AdamW's weight decay, applied only to weight matrices."""
    warmup_fraction: Fraction = 0.1
    """Share of all steps used for the linear warm-up from zero."""
    gradient_clip: float = Field(1.0, ge=0.0)
    """Maximum norm of a step's gradient; 0 for no clipping."""
    label_smoothing: Fraction = 0.0
    """Share of each target that is spread evenly over all classes (Szegedy et al. 2016)."""
    masked_share: Fraction = 0.15
    """Pre-training on masked tokens: the share of tokens to predict."""
    token_dropout: Fraction = 0.0
    """Probability that a training token is replaced by the unknown token (with subwords, by the mask token), drawn
    again in each epoch."""
    embeddings_from_texts: bool = False
    """Start with token embeddings and pooling weights from latent semantic analysis of the training texts
    (`word_vectors`), instead of random ones. Not used with a pre-trained model."""
    consistency: float = Field(0.0, ge=0.0, le=100.0)
    """If not 0: read each batch twice with different dropout, and add to the loss this weight times the difference
    between the two predictions (R-Drop, Liang et al. 2021). A step takes up to twice as long."""
    ema_decay: Fraction = 0.0
    """Decay per step of the moving average of the weights, which is validated and saved; 0 for no average."""
    validations_per_epoch: int = Field(1, ge=1, le=100)
    """Number of validations per epoch, evenly spaced."""
    patience: int = Field(0, ge=0)
    """Stop after this many validations without improvement; 0 for no early stopping."""
    monitor: Literal["accuracy", "loss", "last"] = "accuracy"
    """Which validation's weights are used: highest accuracy, lowest loss, or the last."""
    optimizer: Literal["adamw", "adam", "muon"] = "adamw"
    """AdamW (decoupled weight decay, none on norms, biases and position embeddings); Muon (Jordan et al. 2024) for the
    matrices of attention and feed-forward, with AdamW for all other parameters; or plain Adam, for the reference
    systems."""
    precision: Precision = "auto"
    """Autocast precision; "auto" is bfloat16 where it is faster (see txcls/inference/device.py), otherwise float32."""
    seed: int = Field(0, ge=0)
    """Seed of initial weights, batch order and dropout: the same seed gives the same result on the same machine."""
    save_every_seconds: float = Field(60.0, ge=0.0)
    """Seconds between saves of the state for `--resume`, which is also saved after each epoch; longer if saving would
    take more than 2 % of the time. 0 saves after every step."""
    snapshots: int = Field(0, ge=0, le=MAX_SNAPSHOTS)
    """Classifiers: number of snapshots of the weights in the checkpoint, for the page Training film: the initial
    weights, the last ones, and more from early steps than from late ones. Each takes two bytes per parameter and one
    validation pass. 0 for none."""

    # Only for the reference systems

    schedule: Literal["cosine", "constant"] = "cosine"
    """Learning rate after warm-up: cosine decay to zero at the last step, or constant."""
    class_weights: Literal["none", "inverse"] = "none"
    """`inverse` weights each class by 1 / count, normalised so that the weights sum to the number of classes."""

    @model_validator(mode="after")
    def _snapshots_fit(self) -> Self:
        if self.snapshots == 1:
            raise ValueError("snapshots: got 1; expected 0, or at least 2 for the initial and the last weights")
        return self


class Calibration(Section):
    """How logits become probabilities; fitted on validation rows, stored in a checkpoint's config.json.

    The surprisal of a class with softmax probability p is -log p; its calibrated probability is proportional to
    exp(-((-log p) / temperature) ** power). With power 1 this is temperature scaling, softmax(logits / temperature)
    (Guo et al. 2017). Label smoothing keeps the surprisal of every class small; a power above 1 compensates for this.
    The ranking of classes is unchanged.
    """

    temperature: float = Field(1.0, ge=0.001, le=1000.0)
    """Divisor of the surprisal; above 1 makes probabilities less extreme."""
    power: float = Field(1.0, ge=0.1, le=10.0)
    """Exponent of the scaled surprisal; 1 for plain temperature scaling."""
    short: tuple[tuple[int, Annotated[float, Field(ge=0.001, le=1000.0)]], ...] = Field((), max_length=16)
    """For texts that are shorter than almost all validation texts: maximum numbers of tokens, in ascending order, each
    with the temperature for texts up to this length, fitted on truncated validation texts."""


class ScopeRule(Section):
    """When a text is out of scope; fitted on validation rows, stored in a checkpoint's config.json."""

    score: ScopeScore
    """The score: the highest calibrated probability; the log-sum-exp of the logits (Liu et al. 2020, "energy"); or the
    number of standard deviations by which the highest logit exceeds the mean logit (after Zhang & Xiang 2023)."""
    threshold: float
    """Texts with a lower score are out of scope."""


class RunConfig(Section):
    """All settings of a run: the contents of a preset file, copied to a checkpoint's config.json."""

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name of the preset, and of the checkpoint folder unless `--out` is given."""
    title: str = ""
    """What the model classifies or predicts, in a few words, for display."""
    imported: str = Field("", max_length=200)
    """For imported models: the class that published it, such as BertForSequenceClassification."""
    objective: Literal["classify", "masked", "causal"] = "classify"
    """The training objective: class labels (`train`), or for `pretrain` masked tokens or the next token (causal)."""
    data: DataConfig = DataConfig()
    text: TextConfig = TextConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()

    @model_validator(mode="after")
    def _objective_fits(self) -> Self:
        if self.objective != "classify" and self.train.snapshots:
            raise ValueError(f"train.snapshots: only for classifiers, got objective = {self.objective}")
        if (self.objective == "causal") != self.model.causal and self.objective != "classify":
            reason = "would see the tokens to predict" if self.objective == "causal" else "could not see later tokens"
            raise ValueError(
                f"objective: {self.objective} needs model.causal = {str(self.objective == 'causal').lower()}; "
                f"otherwise the model {reason}"
            )
        return self

    @property
    def reads_class_token(self) -> bool:
        """Whether every text begins with the class token: with class-token pooling and in language models."""
        return self.model.pooling == "class_token" or self.objective in ("masked", "causal")

    def with_settings(self, assignments: Iterable[str]) -> Self:
        """A copy with `section.key=value` assignments applied (values as TOML; bare words count as strings).

        Raises:
            ConfigError: an assignment does not have this form, or its setting is unknown or invalid.
        """
        values = self.model_dump(mode="json")
        for assignment in assignments:
            key, separator, raw = assignment.partition("=")
            path = key.strip().split(".")
            if not separator or not all(path):
                raise ConfigError(f"--set {assignment!r}: expected section.key=value, for example train.epochs=3")
            target = values
            for part in path[:-1]:
                inner = target.get(part)
                if not isinstance(inner, dict):
                    raise ConfigError(f"--set {assignment!r}: no section {part!r}; expected data, text, model or train")
                target = inner
            target[path[-1]] = _toml_value(raw.strip())
        return self.from_mapping(values, source="--set")


def _toml_value(raw: str) -> Any:
    try:
        return tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return raw


def _explain(error: ValidationError) -> str:
    """All problems as one line: `model.d_model: …; train.epochs: …`."""
    problems = []
    for item in error.errors(include_url=False):
        where = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            problems.append(f"{where}: unknown setting{_suggest(item['loc'])}")
        elif item["type"] == "value_error":
            problems.append(f"{where + '.' if where else ''}{item['ctx']['error']}")
        else:
            message = f"{item['msg'][0].lower()}{item['msg'][1:]}, got {item['input']!r:.100}"
            problems.append(f"{where}: {message}" if where else message)
    return "; ".join(problems)


def _suggest(path: Sequence[int | str]) -> str:
    section: type[BaseModel] = RunConfig
    for part in path[:-1]:
        inner = section.model_fields[str(part)].annotation if str(part) in section.model_fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return ""
        section = inner
    return f" ({did_you_mean(path[-1], section.model_fields) or 'known: ' + ', '.join(section.model_fields)})"


def preset_names() -> tuple[str, ...]:
    """The sorted names of the presets that ship with the package."""
    folder = resources.files("txcls") / "config" / "presets"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


def load_preset(name_or_path: str | Path) -> RunConfig:
    """The preset with this name or in this TOML file.

    Raises:
        ConfigError: there is no such preset or file, it is not TOML, or a setting in it is invalid.
    """
    path = Path(name_or_path)
    if str(name_or_path) in preset_names():
        text = (resources.files("txcls") / "config" / "presets" / f"{name_or_path}.toml").read_text(encoding="utf-8")
    elif path.suffix == ".toml":
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read preset file {path}: {error}") from None
    else:
        raise ConfigError(
            f"no preset named {str(name_or_path)!r}; expected one of {', '.join(preset_names())}, or a .toml file"
        )
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name_or_path}: not a TOML file: {error}") from None
    return RunConfig.from_mapping({"name": path.stem, **values}, source=f"preset {name_or_path}")
