"""Read lessons from files, with a safe YAML loader and validation of each field, and find the shipped lessons."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from txcls.errors import TxclsError, did_you_mean, list_names, sanitize
from txcls.lessons.format import Choice, Drag, Heads, Include, LessonFile, LessonStep, Number
from txcls.lessons.page_address import page_names

SHIPPED = Path(__file__).parent / "shipped"
"""Folder of the shipped lessons: NAME.LANGUAGE.yaml."""
TEMPLATE = Path(__file__).parent / "template.yaml"
"""The file that `lesson new` writes."""
ORDER = ("course", "tokens", "attention", "positions", "agreement", "explanation", "training", "errors", "change")
"""The shipped lessons, in the order of the list."""
_FILE_NAME = re.compile(r"[a-z0-9_-]+\.[a-z]{2,3}(-[A-Za-z0-9]+)*\.yaml")
NAMING_RULE = "A lesson's file is called NAME.LANGUAGE.yaml in lower case, such as mine.en.yaml."


class LessonError(TxclsError):
    """A lesson file cannot be read, is invalid, or makes a false statement about a model."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson with all its steps.

    Attributes:
        name: name of its file, without the language.
        source: the file, for messages.
        steps: all steps in order, including those of included lessons.
        chapters: for each step, the title of the lesson it was included from; "" for the lesson's own steps.
        version: differs after each change to the file.
    """

    name: str
    source: str
    title: str
    language: str
    minutes: float
    summary: str
    steps: tuple[LessonStep, ...]
    chapters: tuple[str, ...]
    version: str = ""

    def planned(self, step: int) -> tuple[float, float] | None:
        """The planned start and end, in minutes, of a step and the steps that share its time; None if there is no
        plan."""
        minutes = [step.minutes or 0.0 for step in self.steps]
        first = next((i for i in range(step, -1, -1) if minutes[i]), None)
        if first is None:
            return None
        start = sum(minutes[:first])
        return start, start + minutes[first]

    def where(self, step: int, field: str = "") -> str:
        """The start of a message about a step, counted from 0."""
        prefix = f"{self.source}: step {step + 1} ({self.steps[step].title})"
        return f"{prefix}: {field}" if field else prefix


class _Loader(yaml.SafeLoader):
    """Safe YAML in which on, off, yes and no are strings, and duplicate keys are errors."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool" or first in "tTfF"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _mapping(loader: _Loader, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    for key in keys:
        if not isinstance(key, str):
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is not a word", node.start_mark)
        if keys.count(key) > 1:
            raise yaml.constructor.ConstructorError(None, None, f"{key!r} occurs twice", node.start_mark)
    values = [loader.construct_object(value, deep=True) for _, value in node.value]
    return dict(zip(keys, values, strict=True))


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def read_lesson(path: str | Path, *, depth: int = 0) -> Lesson:
    """Read a lesson from a file; included lessons are looked up in the same folder and among the shipped lessons.

    `depth` is the number of lessons that include this one, one inside another.

    Raises:
        LessonError: the file cannot be read, is not valid YAML, or a field is missing, unknown or invalid; the message
            gives the file, step and field.
    """
    file = Path(path)
    fields = _parse(file)
    try:
        parsed = LessonFile.model_validate(fields)
    except ValidationError as error:
        raise LessonError(f"{file}: {_explain(error, fields)}") from None
    if (name_language := _language_in_name(file)) not in (None, parsed.language):
        raise LessonError(
            f"{file}: language: is {parsed.language}, but {name_language} in the file's name; correct one of them"
        )
    steps, chapters = _expand(parsed, file, depth=depth)
    stem = file.name.removesuffix(".yaml").removesuffix(".yml").removesuffix(f".{parsed.language}")
    name = re.sub(r"[^a-z0-9_-]+", "-", stem.lower()).strip("-")[:80] or "lesson"
    lesson = Lesson(
        name, str(file), parsed.title, parsed.language, parsed.minutes, parsed.summary, tuple(steps), tuple(chapters)
    )
    for number, step in enumerate(steps):
        if step.page not in page_names():
            raise LessonError(
                f"{lesson.where(number, 'page')}: there is no page {sanitize(step.page)}; there are "
                f"{list_names(page_names())}"
            )
    return lesson


def find_lesson(name: str, language: str = "en") -> Lesson:
    """A lesson by name: in this language, or else in English or any language; LessonError if there is none."""
    file = lesson_file(name, language)
    return _load(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=200)
def _load(file: Path, version: int) -> Lesson:
    return replace(read_lesson(file), version=str(version))


def lesson_file(name: str, language: str = "en") -> Path:
    """The file of a lesson, in the folder TXCLS_LESSONS or among the shipped lessons; LessonError if there is none."""
    if not (files := _files().get(name)):
        raise LessonError(f"there is no lesson {sanitize(name, limit=80)}; choose one of {list_names(lesson_names())}")
    return files.get(language) or files.get("en") or files[min(files)]


def lesson_names() -> tuple[str, ...]:
    """Names of all lessons; those in TXCLS_LESSONS come first."""
    return tuple(_files())


def languages_of(name: str) -> tuple[str, ...]:
    """Languages in which a lesson exists."""
    return tuple(_files().get(name, ()))


def open_lesson(path_or_name: str, language: str = "en") -> Lesson:
    """A lesson by the path of its file, or else by the name of a shipped lesson.

    Raises:
        LessonError: neither exists.
    """
    path = Path(path_or_name)
    if path.is_file() or path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        return read_lesson(path)
    return find_lesson(path_or_name, language)


def write_template(file: str | Path) -> None:
    """Write a template to edit, in the language given by the file name.

    Raises:
        LessonError: the file exists, or cannot be written.
    """
    template = TEMPLATE.read_text(encoding="utf-8")
    if language := _language_in_name(Path(file)):
        template = template.replace("language: en #", f"language: {language} #")
    try:
        with Path(file).open("x", encoding="utf-8") as target:
            target.write(template)
    except FileExistsError:
        raise LessonError(f"{file}: exists; choose another name") from None
    except OSError as error:
        raise LessonError(f"{file}: cannot be written: {error.strerror or error}") from None


def not_offered() -> str:
    """Why the app does not offer some files in TXCLS_LESSONS, in a sentence; "" if it offers all of them."""
    setting = os.environ.get("TXCLS_LESSONS")
    if not setting:
        return ""
    folder = Path(setting)
    if not folder.is_dir():
        return f"TXCLS_LESSONS is {sanitize(setting)}, which is not a folder."
    misnamed = [file.name for file in sorted(folder.glob("*.y*ml")) if not is_offered(file)]
    return f"Not offered: {list_names(misnamed)}. {NAMING_RULE}" if misnamed else ""


def is_offered(file: Path) -> bool:
    """Whether the app would offer a file with this name."""
    return _FILE_NAME.fullmatch(file.name) is not None


def _language_in_name(file: Path) -> str | None:
    """The language in a file name; None if there is none."""
    return file.name.split(".")[1] if is_offered(file) else None


def _files() -> dict[str, dict[str, Path]]:
    """Each lesson's file in each language: first those in TXCLS_LESSONS, then the shipped ones in `ORDER`."""
    folder = os.environ.get("TXCLS_LESSONS")
    files = sorted(Path(folder).glob("*.yaml")) if folder else []
    files += sorted(SHIPPED.glob("*.yaml"), key=lambda file: (ORDER.index(file.name.split(".")[0]), file.name))
    lessons: dict[str, dict[str, Path]] = {}
    for file in filter(is_offered, files):
        name, language, _ = file.name.split(".")
        lessons.setdefault(name, {}).setdefault(language, file)
    return lessons


def _parse(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > 1_000_000:
            raise LessonError(f"{file}: larger than 1 MB; a lesson is a short text")
        text = file.read_text(encoding="utf-8")
        # With aliases, a few bytes can expand to gigabytes.
        if any(isinstance(event, yaml.events.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            raise LessonError(f"{file}: YAML anchors (& and *) are not allowed in a lesson; repeat the value instead")
        fields = yaml.load(text, _Loader)
    except OSError as error:
        raise LessonError(f"{file}: cannot be read: {error.strerror or error}; `txcls lesson new` writes one") from None
    except (UnicodeDecodeError, RecursionError):
        raise LessonError(f"{file}: is not valid YAML in UTF-8; `txcls lesson new` writes an example") from None
    except yaml.YAMLError as error:
        raise LessonError(f"{file}: {_describe_yaml_error(error)}") from None
    if not isinstance(fields, dict):
        raise LessonError(f"{file}: expected fields such as title and steps; `txcls lesson new` writes an example")
    return fields


def _describe_yaml_error(error: yaml.YAMLError) -> str:
    """What is wrong and where, for authors of lessons."""
    mark: yaml.Mark | None = getattr(error, "problem_mark", None)
    if mark is None:
        return f"is not valid YAML: {error}"
    problem = getattr(error, "problem", None) or error
    hint = "" if "twice" in str(problem) else '; put text with any of : # % @ ` & * ! | > [ ] { } in "quotes"'
    return f"line {mark.line + 1}, column {mark.column + 1}: is not valid YAML: {problem}{hint}"


def _expand(lesson: LessonFile, file: Path, *, depth: int) -> tuple[list[LessonStep], list[str]]:
    """All steps, and for each the title of the lesson from which it was included."""
    steps: list[LessonStep] = []
    chapters: list[str] = []
    for number, item in enumerate(lesson.steps):
        if isinstance(item, LessonStep):
            steps.append(item)
            chapters.append("")
            continue
        other = _read_included(item, lesson.language, file, f"{file}: step {number + 1}: lesson", depth)
        numbers = item.steps or range(1, len(other.steps) + 1)
        if wrong := [n for n in numbers if not 1 <= n <= len(other.steps)]:
            raise LessonError(
                f"{file}: step {number + 1}: steps: {item.lesson} has no step {wrong[0]}; it has {len(other.steps)}"
            )
        included = [other.steps[n - 1].model_copy(update={"minutes": None}) for n in numbers]
        included[0] = included[0].model_copy(update={"minutes": item.minutes or other.minutes})
        if item.room is not None:
            included[-1] = included[-1].model_copy(update={"room": item.room})
        steps += included
        chapters += [other.title] * len(included)
    return steps, chapters


def _read_included(include: Include, language: str, file: Path, where: str, depth: int) -> Lesson:
    if depth >= 3:
        raise LessonError(f"{where}: {include.lesson} is nested too deeply; do lessons include one another?")
    for candidate in (file.parent / f"{include.lesson}.{language}.yaml", file.parent / f"{include.lesson}.yaml"):
        if "/" not in include.lesson and candidate.is_file():
            return read_lesson(candidate, depth=depth + 1)
    try:
        return read_lesson(lesson_file(include.lesson, language), depth=depth + 1)
    except LessonError as error:
        raise LessonError(f"{where}: {error}") from None


def _explain(error: ValidationError, fields: dict[str, Any]) -> str:
    """All problems in one line: `step 2 (Heads): question.answer: …`."""
    problems = []
    for item in error.errors(include_url=False):
        path = [part for part in item["loc"] if not (isinstance(part, str) and part in _TAGS)]
        where = ""
        if path[:1] == ["steps"] and len(path) > 1 and isinstance(path[1], int):
            step = fields["steps"][path[1]]
            is_include = isinstance(step, dict) and "lesson" in step
            if ("LessonStep" if is_include else "Include") in item["loc"]:
                continue  # an error for the other kind of item
            title = step.get("title") if isinstance(step, dict) else None
            where = f"step {path[1] + 1}" + (f" ({sanitize(title, limit=60)})" if title else "") + ": "
            path = path[2:]
        field = ".".join(str(part) for part in path)
        if item["type"] == "extra_forbidden":
            problem = "; ".join(filter(None, ["unknown field", did_you_mean(field.rpartition(".")[2], _FIELDS)]))
        elif item["type"] == "value_error":
            problem = str(item["ctx"]["error"])
        elif item["type"] == "missing":
            problem = "missing"
        elif item["type"] == "model_attributes_type" and path and _holds_measurement(path):
            problem = (
                f"got {sanitize(item['input'], limit=60)!r}, expected a measurement such as "
                "{measure: predicted_class}; "
                + ("the answer is measured; put the value that you expect under expected; " * (path[-1] == "answer"))
                + "`txcls lesson measures` lists them"
            )
        elif item["type"] == "union_tag_invalid":
            kind, given = item["ctx"]["discriminator"].strip("'"), sanitize(item["ctx"]["tag"], limit=60)
            tags = re.findall(r"'([^']+)'", str(item["ctx"]["expected_tags"]))
            problem = f"there is no {kind} {given}; there are {list_names(tags)}"
        else:
            problem = f"{item['msg'][0].lower()}{item['msg'][1:]}, got {sanitize(item['input'], limit=60)!r}"
        problems.append(f"{where}{field}: {problem}" if field else f"{where}{problem}")
    return "; ".join(dict.fromkeys(problems))


def _holds_measurement(path: Sequence[str | int]) -> bool:
    """Whether the field at this path of a lesson is a measurement."""
    return path[-1] == "answer" or (len(path) > 1 and path[-2] == "facts")


_FIELDS = [
    name for kind in (LessonFile, Include, LessonStep, Choice, Number, Drag, Heads) for name in kind.model_fields
]
"""Names of all fields of a lesson."""
_TAGS = {"LessonStep", "Include", "choice", "number", "drag", "heads"}
"""Names that pydantic adds to the location of an error if a field may be of several kinds."""
