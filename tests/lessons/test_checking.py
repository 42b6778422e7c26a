from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Ablation, ablate, ablate_each
from txcls.inspection.attribution import explain
from txcls.inspection.tracing import trace_text
from txcls.lessons import LessonError, check_lesson, is_right, read_lesson

TEXT = "Rovers lost to Wanderers, who beat United last week."
load = cache(Predictor.load)


@pytest.fixture(scope="module")
def model() -> Predictor:
    return load("who_won")


def lesson_with(tmp_path: Path, **fields: Any) -> Any:
    step = {"title": "One", "page": "attention", "checkpoint": "who_won", "text": TEXT, "narration": "Look."} | fields
    content = {"title": "T", "language": "en", "minutes": 1, "summary": "S", "steps": [step]}
    file = tmp_path / "lesson.yaml"
    file.write_text(yaml.safe_dump(content, allow_unicode=True), "utf-8")
    return read_lesson(file)


def fact(tmp_path: Path, **measure: Any) -> Any:
    step = lesson_with(tmp_path, facts={"x": measure}).steps[0]
    return step.facts["x"].result(load, step.checkpoint, step.text)


def check(tmp_path: Path, **fields: Any) -> Any:
    return check_lesson(lesson_with(tmp_path, **fields), load, checkpoints=["who_won", "ag_news"])


def test_measures_equal_the_inspection_functions(tmp_path: Path, model: Predictor) -> None:
    prediction, traced = model.predict([TEXT])[0], trace_text(model, TEXT)
    assert fact(tmp_path, measure="predicted_class") == prediction.label
    assert fact(tmp_path, measure="probability") == pytest.approx(100 * prediction.ranked[0].probability)
    assert fact(tmp_path, measure="tokens") == sum(not token.is_special for token in traced.tokens)
    assert fact(tmp_path, measure="unknown", text="Chelsea beat City.") == 1
    row = traced.attention[0, 1, 4]
    assert fact(tmp_path, measure="most_attended", layer=1, head=2, query=5) == traced.tokens[int(row.argmax())].text
    weight = fact(tmp_path, measure="attention_weight", layer=1, head=2, query=5, key=4)
    assert weight == pytest.approx(100 * row[3], abs=1e-4)
    effects = ablate_each(model, TEXT, heads="uniform")
    effect = fact(tmp_path, measure="head_effect", layer=2, head=1, how="uniform")
    assert effect == pytest.approx(100 * effects.heads[1, 0], abs=1e-4)
    changed = ablate(model, TEXT, [[Ablation("head", "zero", 0, 1)]]).changed[0]
    assert fact(tmp_path, measure="predicted_class", switched=["1.2"]) == model.classes[int(changed.argmax())]
    explained = explain(model, TEXT, methods=["leave_one_out"])
    best = explained.words[int(explained.scores["leave_one_out"].argmax())].text
    assert fact(tmp_path, measure="largest_attribution") == best


def test_heads_that_flip_the_answer_are_found(tmp_path: Path, model: Predictor) -> None:
    settings = [[Ablation("head", "uniform", layer, head)] for layer in range(2) for head in range(2)]
    result = ablate(model, TEXT, settings)
    flipped = [name for name, row in zip(["1.1", "1.2", "2.1", "2.2"], result.changed, strict=True)
               if row.argmax() != result.original.argmax()]  # fmt: skip
    assert flipped and fact(tmp_path, measure="heads_that_flip", how="uniform") == flipped


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"state": {"layer": 1, "colour": 2}}, r"step 1 \(One\): state\.colour: there is no such parameter"),
        ({"state": {"section": "arcs", "heads": "gone"}}, r"state\.heads: “gone” is not a valid value"),
        ({"checkpoint": "nobody"}, r"checkpoint: There is no checkpoint “nobody”"),
        ({"narration": "[[missing]]"}, r"narration: there is no fact \[\[missing\]\]"),
        ({"claims": [{"measure": "predicted_class", "equals": "Rovers"}]},
         r"claims\.1: predicted_class: states equals Rovers, the model gives Wanderers"),
        ({"claims": [{"measure": "probability", "at_most": 50}]}, r"states at_most 50\.0, the model gives > 99.9"),
        ({"facts": {"x": {"measure": "head_effect", "layer": 3, "head": 1}}}, r"facts\.x: who_won has no head 3\.1"),
        ({"facts": {"x": {"measure": "film_step", "accuracy": 90, "checkpoint": "ag_news"}}}, "no training film"),
        ({"question": {"kind": "choice", "ask": "?", "options": ["Rovers", "City"],
                       "answer": {"measure": "predicted_class"}}}, r"question\.options: the model gives 'Wanderers'"),
        ({"question": {"kind": "choice", "ask": "?", "options": ["Rovers", "Wanderers"], "expected": "Rovers",
                       "answer": {"measure": "predicted_class"}}}, r"expected: states Rovers, the model gives Wand"),
        ({"question": {"kind": "number", "ask": "?", "answer": {"measure": "tokens"}, "expected": 3}},
         r"expected: states 3\.0, the model gives 11"),
        ({"question": {"kind": "heads", "ask": "?", "expected": ["2.1"],
                       "answer": {"measure": "heads_that_flip", "how": "uniform"}}}, r"expected: states .*2\.1"),
        ({"question": {"kind": "drag", "ask": "?", "groups": ["A", "B"], "answer": {"measure": "heads_that_flip"}}},
         "expected groups"),
        ({"question": {"kind": "choice", "ask": "?", "options": [
            {"text": "one", "claim": {"measure": "probability", "at_least": 0}},
            {"text": "two", "claim": {"measure": "probability", "at_least": 1}}]}}, "exactly one claim must be true"),
    ],
)  # fmt: skip
def test_claims_that_the_model_contradicts_are_refused(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(LessonError, match=message):
        check(tmp_path, **fields)


def test_answers_of_each_kind_are_judged(tmp_path: Path) -> None:
    def solved(**question: Any) -> Any:
        return check(tmp_path, question={"ask": "?", **question})[0]

    choice = solved(kind="choice", options=["Rovers", "Wanderers"], answer={"measure": "predicted_class"})
    assert is_right(choice, 1) and not is_right(choice, 0)
    number = solved(kind="number", answer={"measure": "tokens"}, tolerance=2)
    assert is_right(number, 9) and is_right(number, 13) and not is_right(number, 8.9) and not is_right(number, None)
    heads = solved(kind="heads", answer={"measure": "heads_that_flip", "how": "uniform"})
    assert is_right(heads, list(reversed(heads.right))) and not is_right(heads, heads.right[:1])
    groups = solved(
        kind="drag",
        groups=["Known", "Unknown"],
        answer={"measure": "grouping", "by": "known", "words": ["city", "zyx"]},
    )
    assert groups.right == [["city"], ["zyx"]] and groups.answer == "Known: city · Unknown: zyx"
    assert is_right(groups, [["city"], ["zyx"]]) and not is_right(groups, [["zyx"], ["city"]])
