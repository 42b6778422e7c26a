"""Count the models, trained with different seeds, that have each clause of a head's story (in any head).

    for n in 0 1 2 3 4; do python -m txcls train who_won --seed $n --out checkpoints/who_won_seed$n; done
    python -m benchmarks.head_stories checkpoints/who_won_seed*

Checkpoints are given by folder or name; by default, all with names that begin with who_won are compared. A checkpoint's
head atlas is read if `txcls evaluate NAME --heads --write` has saved it; otherwise it is measured, which takes about a
minute for a `who_won` model. Clauses are counted separately, since the same behaviour may be one clause of a longer
story in another model.
"""

import argparse
import sys
from collections.abc import Sequence

from benchmarks._measure import machine
from txcls.checkpoint.listing import checkpoint_names
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation_on_rows import measure_heads
from txcls.inspection.stories import Clause, HeadAtlas, all_heads_sentence, measure_atlas


def atlas_of(classifier: Predictor) -> HeadAtlas:
    """The atlas stored in the checkpoint, or a new one."""
    return HeadAtlas.of(classifier) or measure_atlas(classifier, *measure_heads(classifier))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("checkpoints", nargs="*", metavar="CHECKPOINT", help="trained with different seeds")
    options = parser.parse_args(arguments)
    print(machine())
    atlases = {}
    for name in options.checkpoints or [name for name in checkpoint_names() if name.startswith("who_won")]:
        classifier = Predictor.load(name)
        atlas = atlases[classifier.name] = atlas_of(classifier)
        print(f"{classifier.name}: {all_heads_sentence(atlas)}")
        for head in atlas.heads:
            story = head.story
            print(
                f"  {story.story.layer + 1}.{story.story.head + 1}  {100 * head.worth:5.1f}  "
                f"{story.verdict:11}  {story.share:5.2f}  {story.control_share:5.2f}  {story.story}"
            )
    print("\nclauses of heads that are not idle, and the models that have them in a confirmed story")
    confirmed_in: dict[Clause, set[str]] = {}
    for name, atlas in atlases.items():
        for head in atlas.heads:
            for clause in head.story.story.clauses if head.story.verdict != "idle" else ():
                confirmed_in.setdefault(clause, set()).update([name] if head.story.verdict == "confirmed" else [])
    for clause, models in sorted(confirmed_in.items(), key=lambda item: (-len(item[1]), str(item[0]))):
        print(f"  {clause}: {', '.join(sorted(models)) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
