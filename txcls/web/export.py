"""Export a page that classifies in the visitor's browser: one file that opens from disk, or a folder for a static host.

The page contains the checkpoint, the project's JavaScript (joined by txcls/web/assemble.py) and the tokenizer
tables (txcls/web/tokenizer_rules.py). Its content security policy forbids requests to other servers and all other
scripts.
"""

import base64
import copy
import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from safetensors.torch import save

from txcls import __version__
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.folders import new_folder, shared_lock
from txcls.checkpoint.load import find_checkpoint
from txcls.checkpoint.weights import as_stored, check_finite
from txcls.config.places import IMPLEMENTED, SIZES, not_available
from txcls.data.datasets import Example, dataset_names, examples_for
from txcls.errors import CheckpointError, TraceError, reason_of
from txcls.evaluation.evaluate import accepted_out_of_scope
from txcls.evaluation.linear import recommended_linear
from txcls.inference.predictor import Prediction, Predictor
from txcls.inspection.ablation import Means
from txcls.inspection.heads import HeadMeasurements, head_summaries
from txcls.inspection.steps import walk_through
from txcls.text.formatting import percentage
from txcls.web.assemble import (
    GENERATOR,
    HERE,
    fill_page,
    fill_template,
    page_json,
    page_languages,
    script,
    without_comments,
)
from txcls.web.preview import PREVIEW, draw_preview
from txcls.web.tokenizer_rules import reading_tables

SETTINGS = (*SIZES, *IMPLEMENTED)
"""The settings of `ModelConfig` that model.js reads."""
PLAYGROUND = "playground.html"
"""The playground's file beside a page."""
SHEETS = (
    "page/theme", "picture/buttons", "page/page", "picture/machine", "picture/saving", "page/patch", "page/bins",
    "page/lesson", "page/article",
)  # fmt: skip
DESCRIPTION = (
    "See how a Transformer classifies a text, word by word and head by head, in your browser. No text leaves it."
)
CHECKED_TEXTS = (
    "The 2nd order, sent on Monday, hasn't arrived: where is it?",
    "What a wonderful evening! They won the match by 3 to 1 and sang until the last train had left.",
    "Prices of oil and wheat rose again",
)
"""Texts with which a page checks itself, together with a few examples."""
MAX_IMPORTED = 10_000_000
"""Maximum size in bytes of an imported model's weights in a page, in float16."""
N_CHECKED = 3
N_CHECKED_CLASSES = 20


@dataclass(frozen=True)
class _Model:
    """A classifier for a page: its description and the bytes of its model.safetensors."""

    description: dict[str, Any]
    weights: bytes
    file: str
    """Stem of its file names in a folder."""


def export_page(
    checkpoints: Sequence[str | Path],
    out: str | Path,
    *,
    single_file: bool = False,
    lesson: Mapping[str, Any] | None = None,
    address: str = "",
    project: str = "",
    playground: bytes = b"",
    language: str = "",
    on_note: Callable[[str], object] = lambda _: None,
) -> Path:
    """Write a page for these checkpoints into a folder, replacing an older page there, and return its index.html.

    Args:
        checkpoints: the checkpoints; several are offered in a menu.
        out: the folder.
        single_file: write a page that opens from disk. Otherwise the folder also has the weights and a README.md for a
            static Space on Hugging Face; any static file host can serve it.
        lesson: data of a lesson (`txcls.web.lesson`), which is shown beside the checkpoints.
        address: URL of the page, if known: links to it then have a preview image, which is a file beside the page.
        project: URL of the project, for a link in the footer.
        playground: the playground's page (`txcls.web.playground`), if it should be written beside the page and linked.
        language: the only language of the page, such as "de"; by default, it has all and opens in the visitor's.
        on_note: called with a sentence for each checkpoint whose linear model is recommended.

    Raises:
        CheckpointError: a URL does not begin with https:// or http://; there is no such language; a checkpoint cannot
            be read or has settings that a page does not support; two checkpoints have the same name; the folder holds
            other files or cannot be written.
    """
    target = Path(out)
    for url in (address, project):
        if url and not url.startswith(("https://", "http://")):
            raise CheckpointError(f"got the address {url[:80]!r}; expected one that begins with https:// or http://")
    refuse_other_files(target)
    models = [_read(checkpoint, on_note=on_note) for checkpoint in checkpoints]
    _check(models)
    page = _html(
        models, single_file=single_file, lesson=lesson, address=address, project=project,
        playground=PLAYGROUND if playground else "", language=language,
    )  # fmt: skip
    files = {"index.html": page}
    if address:
        files[PREVIEW] = draw_preview([model.description for model in models])
    if playground:
        files[PLAYGROUND] = playground
    if not single_file:
        for model in models:
            files |= {f"{model.file}.json": page_json(model.description), f"{model.file}.safetensors": model.weights}
        files["README.md"] = _readme(models)
    return write_page(target, files)


def write_page(target: Path, files: Mapping[str, bytes]) -> Path:
    """Write these files into the folder, replacing an older page once all are written; return the path of index.html.

    Raises:
        CheckpointError: the folder cannot be written.
    """
    try:
        with new_folder(target) as temporary:
            for name, content in files.items():
                (temporary / name).write_bytes(content)
                (temporary / name).chmod(0o644)
    except OSError as error:
        raise CheckpointError(
            f"cannot write {target}: {reason_of(error):.200}; an older page there is unchanged. Free some space or "
            "choose another folder"
        ) from error
    return target / "index.html"


def single_page(checkpoint: str | Path) -> bytes:
    """The page for one checkpoint as a single file.

    Raises:
        CheckpointError: the checkpoint cannot be read, or has settings that a page does not support.
    """
    model = _read(checkpoint)
    _check([model])
    return _html([model], single_file=True)


def pack(checkpoint: str | Path) -> bytes:
    """A classifier as bytes, for the app's own pages.

    It consists of the length of a JSON description in 4 bytes, little-endian, the description (with the tokenizer
    tables), padding to a multiple of 8 bytes, and model.safetensors.

    Raises:
        CheckpointError: the checkpoint cannot be read, or has settings that a page does not support.
    """
    model = _read(checkpoint)
    text = model.description["tokenizer"]["config"]
    tables = reading_tables(tokenizers={text["tokenizer"]})
    return join_json_and_weights({"description": model.description, "tables": tables}, model.weights)


def join_json_and_weights(description: Any, weights: bytes) -> bytes:
    """A JSON description and a model.safetensors in the format of `pack`."""
    content = page_json(description)
    content += b" " * (-(4 + len(content)) % 8)
    return len(content).to_bytes(4, "little") + content + weights


def unsupported(checkpoint: Checkpoint) -> str | None:
    """The reason why a checkpoint cannot be exported, as a sentence; None if it can."""
    if checkpoint.config.objective != "classify":
        return f"{checkpoint.name} is a language model; only classifiers can be exported as a page"
    if reason := not_available(checkpoint.config.model, "page"):
        return f"{checkpoint.name}: an exported page is {reason}"
    if problem := too_large(checkpoint):
        return f"{checkpoint.name}: an exported page is not available, since {problem}"
    return None


def too_large(checkpoint: Checkpoint) -> str | None:
    """The reason why an imported model cannot be sent to a browser, as a clause; None if it can."""
    size = 2 * checkpoint.model.n_parameters
    if not checkpoint.config.imported or size <= MAX_IMPORTED:
        return None
    return f"it would send {size / 1e6:.0f} MB of weights to each browser; at most {MAX_IMPORTED / 1e6:.0f} MB are sent"


def _rounded(classifier: Predictor) -> tuple[Predictor, bytes]:
    """A classifier with its weights rounded to float16, as a page computes it, and the bytes of these weights."""
    checkpoint = classifier.checkpoint
    stored = check_finite(as_stored(checkpoint.model.state_dict()), where=f"{checkpoint.name}: weights in float16")
    model = copy.deepcopy(checkpoint.model)
    model.load_state_dict(stored)
    return Predictor(replace(checkpoint, model=model)), save(stored, metadata={"format": "txcls"})


def refuse_other_files(folder: Path) -> None:
    """Refuse a folder that holds anything other than an exported page, since replacing it would delete those files.

    Raises:
        CheckpointError: the folder holds other files.
    """
    if not folder.is_dir():
        return
    files = {file.name for file in folder.iterdir()}
    page = folder / "index.html"
    is_exported = page.is_file() and GENERATOR.encode() in page.read_bytes()[:4096]
    models = {name.removesuffix(".safetensors") for name in files if name.endswith(".safetensors")}
    exported = {
        "index.html",
        "README.md",
        PREVIEW,
        PLAYGROUND,
        *(f"{name}.{kind}" for name in models for kind in ("json", "safetensors")),
    }
    others = sorted(files - exported if is_exported else files)
    if others:
        raise CheckpointError(
            f"{folder} holds other files ({', '.join(others)[:80]}), which would be deleted; choose another folder"
        )


def _read(path_or_name: str | Path, *, on_note: Callable[[str], object] = lambda _: None) -> _Model:
    folder = find_checkpoint(path_or_name)
    with shared_lock(folder.absolute().parent):
        classifier = Predictor.load(folder)
        if sentence := unsupported(classifier.checkpoint):
            raise CheckpointError(sentence)
        weights = (folder / "model.safetensors").read_bytes()
    if classifier.checkpoint.config.imported:
        classifier, weights = _rounded(classifier)
    if recommended := recommended_linear(classifier.checkpoint):
        on_note(f"A page shows the Transformer; `predict` uses {recommended}.")
    try:
        walk_through(classifier, CHECKED_TEXTS[0])  # which checks that model.py computes what a page computes
    except TraceError as error:
        raise CheckpointError(f"{classifier.name}: an exported page is not available, since {error}") from None
    return _Model(describe(classifier), weights, re.sub(r"[^A-Za-z0-9_-]+", "-", classifier.name).strip("-") or "model")


def _check(models: Sequence[_Model]) -> None:
    if not models:
        raise CheckpointError("got no checkpoint; name at least one")
    names = [model.file.lower() for model in models]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise CheckpointError(f"several checkpoints would be called {repeated[0]!r} in the page; rename a folder")


def describe(classifier: Predictor) -> dict[str, Any]:
    """Everything that a page needs from a classifier except its weights, as JSON values."""
    checkpoint = classifier.checkpoint
    config = checkpoint.config
    settings = config.model.model_dump(mode="json")
    means, heads = Means.of(classifier), HeadMeasurements.of(classifier)
    examples = examples_for(config.data.dataset)
    if config.data.dataset == "table":
        examples = examples[:1]  # the others may be in a language other than that of the user's texts
    predictions = classifier.predict([example.text for example in examples])
    return {
        "name": classifier.name,
        "title": config.title,
        "imported": bool(config.imported),
        "classes": list(classifier.classes),
        "config": {name: settings[name] for name in SETTINGS},
        "tokenizer": classifier.tokenizer.to_dict(),
        "calibration": checkpoint.calibration.model_dump(mode="json"),
        "unusual": _usual_texts(classifier),
        "scope": None if checkpoint.scope is None else checkpoint.scope.model_dump(mode="json"),
        "means": None if means is None else {name: mean.round(4).tolist() for name, mean in means.taps.items()},
        "stories": {} if heads is None else head_summaries(heads),
        "examples": [
            [example.title, example.text, *([example.changed] if example.changed else [])] for example in examples
        ],
        "pair": _pair(classifier, examples, predictions),
        "opening": [[ranked.label, round(ranked.probability, 4)] for ranked in predictions[0].ranked[:4]],
        "checks": _self_checks(classifier, [example.text for example in examples]),
        "card": _card(classifier),
    }


def _pair(classifier: Predictor, examples: Sequence[Example], predictions: Sequence[Prediction]) -> int | None:
    """The index of the shortest example that can be patched from its changed version; None if there is none."""
    lengths = {}
    for n, (example, prediction) in enumerate(zip(examples, predictions, strict=True)):
        changed = classifier.predict([example.changed])[0]
        if len(changed.tokens) == len(prediction.tokens) and changed.label not in (None, prediction.label):
            lengths[n] = len(changed.tokens)
    return min(lengths, key=lengths.__getitem__, default=None)


def _usual_texts(classifier: Predictor) -> dict[str, Any] | None:
    """What decides whether a text is unusual (`Predictor.is_unusual`); None if the checkpoint cannot tell."""
    counts = classifier.checkpoint.token_counts
    if classifier.sentence_pattern is not None:
        return {"pattern": classifier.sentence_pattern, "bound": 0, "counts": []}
    return None if counts is None else {"pattern": None, **asdict(counts)}


def _self_checks(classifier: Predictor, texts: Sequence[str]) -> list[tuple[str, list[tuple[int, float]]]]:
    """Texts with the probabilities of their most probable classes, which a page recomputes when it is opened."""
    index = {label: n for n, label in enumerate(classifier.classes)}
    predictions = classifier.predict([*texts[:2], *CHECKED_TEXTS], top_k=N_CHECKED_CLASSES)
    checks = [
        (prediction.text, [(index[ranked.label], round(ranked.probability, 6)) for ranked in prediction.ranked])
        for prediction in predictions
        if prediction.ranked
    ]
    return checks[:N_CHECKED]


def _card(classifier: Predictor) -> dict[str, Any]:
    """The model card: the line under the title, facts as pairs, metrics per class, and limits."""
    checkpoint = classifier.checkpoint
    config, metrics = checkpoint.config, checkpoint.metrics
    model, data = config.model, metrics.get("data", {})
    split = next((name for name in ("test", "validation") if name in metrics), None)
    measured = metrics.get(split, {}) if split else {}
    is_english = config.data.dataset in dataset_names()
    facts = [("Language", "English" if is_english else "that of its training texts")]
    if measured:
        facts += [
            ("Accuracy", f"{percentage(measured['accuracy'], 2)} of {measured['n']:,} {split} texts"),
            ("Macro-F1", f"{measured['macro_f1']:.3f}"),
            ("Calibration error", f"{measured['ece']:.3f} (15 bins)"),
        ]
    facts += [
        (name, str(data[key]))
        for name, key in (("Data", "title"), ("Note", "note"), ("Terms", "terms"))
        if data.get(key)
    ]
    if rows := data.get("train_rows"):
        facts.append(("Training texts", f"{rows:,}"))
    if config.imported:
        facts.append(("Origin", f"{config.imported}, imported"))
    kinds = {"word": "words (NLTK's rules)", "bpe": "byte pairs", "wordpiece": "words and pieces (WordPiece)"}
    kind = kinds.get(config.text.tokenizer, "words")
    positions = {"none": "no positions", "learned": "learned positions", "sinusoidal": "sinusoidal positions"}
    facts += [
        ("Model", f"Transformer encoder, layers: {model.n_layers}, heads in each: {model.n_heads}, "
                  f"width: {model.d_model}, {positions[model.positions]}, pooling: {model.pooling.replace('_', ' ')}"),
        ("Parameters", f"{classifier.n_parameters:,}"),
        ("Vocabulary", f"{classifier.tokenizer.vocab_size:,} {kind}"),
        ("Reads", f"the first {model.max_length:,} tokens of a text"),
    ]  # fmt: skip
    n = len(classifier.classes)
    limits = [
        f"It knows only its {n} classes and the kind of text that it was trained on, and assigns every other text to "
        "one of these classes too.",
        "Probabilities are calibrated on validation texts of the same kind; for other texts they are less reliable.",
        "An attention pattern does not by itself explain a prediction. Switch a head off to see whether "
        "the answer changes; another head may compensate.",
    ]
    if config.imported:
        limits[1] = (
            "Its probabilities are not calibrated, and its weights are rounded to 16 bits here. Mean outputs are over "
            "sentences that ship with txcls, not over texts of its own kind."
        )
    if checkpoint.scope is None:
        limits.insert(1, "It cannot tell when a text belongs to none of its classes.")
    elif sentence := accepted_out_of_scope(metrics):
        limits.insert(1, sentence)
    return {
        "accuracy": None if not measured else [measured["accuracy"], measured["n"], split],
        "isEnglish": is_english,
        "parameters": classifier.n_parameters,
        "facts": facts,
        "classes": [
            [row["label"], f"{row['precision']:.3f}", f"{row['recall']:.3f}", f"{row['f1']:.3f}", f"{row['support']:,}"]
            for row in measured.get("per_class", ())
        ],
        "split": split,
        "limits": limits,
    }


def _html(
    models: Sequence[_Model],
    *,
    single_file: bool,
    lesson: Mapping[str, Any] | None = None,
    address: str = "",
    project: str = "",
    playground: str = "",
    language: str = "",
) -> bytes:
    """index.html, with the descriptions and weights, or with the names of the files that contain them."""
    descriptions = [model.description for model in models]
    texts = [description["tokenizer"]["config"] for description in descriptions]
    tables = reading_tables(tokenizers={text["tokenizer"] for text in texts})
    entries = [
        {"name": model.description["name"], "title": model.description["title"]}
        | ({"description": model.description} if single_file else {"file": model.file})
        for model in models
    ]
    weights = [
        f'<script type="text/plain" id="weights-{n}">{base64.b64encode(model.weights).decode()}</script>'
        for n, model in enumerate(models)
        if single_file
    ]
    names = ", ".join(description["title"] or description["name"] for description in descriptions)
    title = lesson["title"] if lesson else names
    code = script("page/page")
    introduction, article = (
        "" if lesson else (HERE / "page" / f"{part}.html").read_text("utf-8") for part in ("introduction", "article")
    )
    template = (HERE / "page" / "page.html").read_text("utf-8")
    link = f'<a href="{html.escape(project, quote=True)}" rel="noopener">The project</a>' if project else ""
    data = page_languages(template, introduction, article, code, names, link, only=language) | {
        "version": __version__,
        "tables": tables,
        "models": entries,
        "lesson": lesson,
        "playground": playground,
    }
    megabytes = sum(len(model.weights) for model in models[: None if single_file else 1]) / 1e6
    return fill_page(
        "page/page.html",
        code=without_comments(code),
        sheets=SHEETS,
        sources={"connect-src": "'none'" if single_file else "'self'"},
        values={
            "TITLE": html.escape(title if len(title) <= 80 else f"{len(models)} text classifiers"),
            "DESCRIPTION": _description(title, lesson, address),
            "SIZE": f"{megabytes:.1f}",
            "INTRODUCTION": introduction,
            "ARTICLE": article,
            "PROJECT": link,
            "DATA": page_json(data).decode("utf-8"),
            "WEIGHTS": "\n".join(weights),
        },
    )


def _description(title: str, lesson: Mapping[str, Any] | None, address: str) -> str:
    """The tags that search engines and messengers read."""
    sentence = lesson["words"]["about"] if lesson else DESCRIPTION
    tags = {"og:type": "website", "og:title": title, "og:description": sentence}
    if address:
        address = address.removesuffix("/") + "/"
        tags |= {"og:url": address, "og:image": address + PREVIEW, "og:image:width": "1200"}
        tags |= {"og:image:height": "630", "og:image:alt": f"{title}: a text and its class probabilities"}
    card = {"description": sentence, "twitter:card": "summary_large_image" if address else "summary"}
    return "\n".join(
        f'<meta {kind}="{name}" content="{html.escape(text, quote=True)}">'
        for kind, contents in (("name", card), ("property", tags))
        for name, text in contents.items()
    )


def _readme(models: Sequence[_Model]) -> bytes:
    """README.md: the header of a static Space, a description of the page, and how to host it."""
    descriptions = [model.description for model in models]
    first = descriptions[0]
    title = (first["title"] or first["name"]) if len(models) == 1 else f"{len(models)} text classifiers"
    lines = []
    for description in descriptions:
        card = description["card"]
        accuracy = card["accuracy"]
        result = (
            f"{percentage(accuracy[0])} correct on {accuracy[1]:,} {accuracy[2]} texts" if accuracy else "not evaluated"
        )
        lines.append(
            f"- `{description['name']}`: {description['title'] or 'a text classifier'}; "
            f"{len(description['classes'])} classes, {result}, {card['parameters']:,} parameters; "
            f"language: {dict(card['facts'])['Language']}"
        )
    values = {
        "TITLE": json.dumps(title[:60], ensure_ascii=False),
        "VERSION": __version__,
        "MODELS": "\n".join(lines),
    }
    return fill_template("page/readme.md", values)
