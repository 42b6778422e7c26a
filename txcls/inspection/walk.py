"""The forward pass of one text as a walk: one step after another, from what was typed to calibrated probabilities.

All numbers are the taps of one trace, or follow from these by the arithmetic that the step spells out. The steps are
those of the classifier at hand: what its recipe leaves out is no step.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from txcls.calibration import calibrated_log_probabilities, calibrated_probabilities, log_softmax
from txcls.classifier import Classifier
from txcls.inspection.arithmetic import Arithmetic, added, equals, looked_up, number, softmax_share, summed_products
from txcls.inspection.phrases import phrases_of
from txcls.inspection.steps import Question, Step, array, dimensions, of_bins, of_numbers, snippet, which
from txcls.inspection.tracing import TracedText, trace_text
from txcls.inspection.walk_layers import LayerSteps
from txcls.text.vocabulary import PAD, SPECIAL_TOKENS


@dataclass(frozen=True)
class Walk:
    """One text's way through a classifier. `sizes` are the letters' numbers for this text; `focus` is the token that
    the questions are about, the one that counts most in the end."""

    traced: TracedText
    steps: tuple[Step, ...]
    sizes: dict[str, int]
    focus: int

    def find(self, name: str, layer: int) -> int:
        """Place of the step of that name, in that layer if it is in one; KeyError where there is none."""
        for place, step in enumerate(self.steps):
            if step.name == name and step.layer in (None, layer):
                return place
        raise KeyError(name)


def walk_through(classifier: Classifier, text: str) -> Walk:
    """All steps of the forward pass of one text.

    Raises:
        TraceError: the text holds no token to read.
    """
    return _Walker(classifier, trace_text(classifier, text)).walk()


class _Walker(LayerSteps):
    """Makes all steps of one text."""

    def walk(self) -> Walk:
        config = self.config
        steps = [*self._typed(), *self._embedded()]
        before = steps[-1]
        for layer in range(config.n_layers):
            added_steps = self.layer_steps(layer, before)
            steps += added_steps
            before = added_steps[-1]
        steps += self._end(before)
        sizes = {
            "B": 1, "T": len(self.names), "D": config.d_model, "H": config.n_heads, "E": config.d_head,
            "F": config.d_ff, "C": len(self.classifier.classes), "V": self.classifier.encoder.vocab_size,
            "L": config.n_layers,
        }  # fmt: skip
        return Walk(self.traced, tuple(steps), sizes, self.focus)

    # What was typed

    def _typed(self) -> list[Step]:
        encoder = self.classifier.encoder
        read = type(encoder)._encode_prefix
        steps = encoder.config.cleaning
        n = len(self.names)
        guesses = sorted({max(n // 2, 1), n, n + max(n // 3, 2), 2 * n + 3})
        cleaned = Step(
            "text",
            "Text",
            "What was typed, a string of characters. "
            + (
                f"Before anything else it is cleaned, by {len(steps)} steps in this order: "
                f"{', '.join(step.replace('_', ' ') for step in steps)}."
                if steps
                else "This recipe does not clean it."
            ),
            "",
            (snippet(read, "cleaned = "),),
        )
        cut = Step(
            "tokens",
            "Tokens",
            "The cleaned text is cut into tokens, T of them: "
            + ("sub-words by byte-pair encoding." if encoder.byte_pairs else "words and marks.")
            + f" At most {encoder.max_length} are read."
            + (" The class token is put in front of them." if encoder.class_token else "")
            + (" Padding fills them up to that many." if self.config.fixed_length else ""),
            "",
            (snippet(read, "for first, last", "tokens.append"),),
            reads=(cleaned.title,),
            _ask=lambda _: Question(
                "How many tokens does the model make of this text?",
                tuple(map(str, guesses)),
                guesses.index(n),
                f"T = {n}: marks count too, and so do the parts of words that the tokenizer knows only in parts.",
            ),
        )
        looked = Step(
            "ids",
            "Ids",
            "Each token becomes a number, its place in the vocabulary of V tokens. A token that is not in it becomes "
            f"{SPECIAL_TOKENS[1]}, id 1. From here on the model sees numbers alone.",
            r"id_i = \mathrm{place}(\mathrm{token}_i), \qquad 0 \le id_i < V",
            (snippet(type(encoder._tokenizer).tokenize, "self._ids.get" if encoder.byte_pairs is None else "index +"),),
            reads=(cut.title,),
            _ask=lambda _: self.which_token(
                "Which of these tokens has the lowest id?",
                [-float(index) for index in self.ids],
                lambda n: (
                    f"Its id is {self.ids[n]}. "
                    + (
                        "Ids follow frequency: the lower, the more often the token came in the training texts; only "
                        "the four special tokens stand before all others."
                        if encoder.byte_pairs is None
                        else "Ids follow the merges: the four special tokens, single bytes, then pairs as they were "
                        "learned."
                    )
                ),
            ),
        )
        return [cleaned, cut, looked]

    # Embeddings

    def _embedded(self) -> list[Step]:
        config, embeddings = self.config, self.model.embeddings
        forward = type(embeddings).forward
        steps, symbols, taps = [self._token_vectors()], ["e_i"], ["embeddings.tokens"]
        if embeddings.ngram is not None:
            steps.append(self._bigram_vectors())
            symbols.append("b_i")
            taps.append("embeddings.ngrams")
        if config.positions != "none":
            steps.append(self._position_vectors())
            symbols.append("p_i")
            taps.append("embeddings.positions")
        parts = [self.value(tap) for tap in taps]
        lengths = [float(np.linalg.norm(part, axis=1).mean()) for part in parts]
        names = [step.title.lower() for step in steps]
        steps.append(
            Step(
                "sum",
                "Start of the residual stream",
                "The vectors of each token are added up. This sum is the residual stream: every later step reads it "
                "and adds to it."
                if len(parts) > 1
                else "The token vectors are the start of the residual stream: this recipe adds nothing to them.",
                f"x_i = {' + '.join(symbols)}",
                (snippet(forward, "x = self.tokens", "out: Tensor"),),
                rows=self.tokens,
                columns=self.wide,
                values=self.value("embeddings.out")[None],
                reads=tuple(step.title for step in steps),
                _explain=lambda _, i, d: added(
                    f"x_{{{i + 1},{d}}}",
                    [f"{s[0]}_{{{i + 1},{d}}}" for s in symbols],
                    [float(part[i, d]) for part in parts],
                ),
                _ask=lambda _: which(
                    "Which of the parts is the longest, on the average of the tokens?",
                    names,
                    lengths,
                    lambda n: ", ".join(f"{one} {length:.2f}" for one, length in zip(names, lengths, strict=True)),
                ),
            )
        )
        return steps

    def _token_vectors(self) -> Step:
        embeddings = self.model.embeddings
        table = array(embeddings.token.weight)
        scale = embeddings.scale
        widened = array(embeddings.widen.weight) if hasattr(embeddings.widen, "weight") else None
        formula = "e_i = E_{id_i}" if widened is None else r"e_i = W_E\,E_{id_i}"
        root = (r"\sqrt{D}", float(scale)) if scale != 1.0 else None

        def explain(_: int, i: int, d: int) -> Arithmetic:
            index = self.ids[i]
            symbol = f"e_{{{i + 1},{d}}}"
            if widened is None:
                return looked_up(symbol, f"E_{{{index},{d}}}", float(table[index, d]), times=root)
            made = summed_products(
                symbol,
                rf"\sum_e E_{{{index},e}}\,W_{{{d},e}}",
                table[index],
                widened[d],
                headers=("E", "W"),
                labels=dimensions(table.shape[1]),
            )
            if root is None:
                return made
            value = made.value * root[1]
            lines = (*made.lines, rf"&\to {number(made.value)} \cdot {root[0]} = {number(value)}")
            return replace(made, lines=lines, value=value)

        repeated = len(set(self.ids)) < len(self.ids)
        return Step(
            "embeddings",
            "Token vectors",
            f"Each id picks its row of the trained table E, which has a row for each of the {len(table):,} tokens."
            + (" A projection widens it to D numbers." if widened is not None else "")
            + (" It is multiplied by √D, as in the 2017 paper." if root else "")
            + (" Equal ids have equal rows: the place plays no part yet." if repeated else ""),
            formula + (rf" \cdot {root[0]}" if root else ""),
            (snippet(type(embeddings).forward, "x = self.tokens"),),
            rows=self.tokens,
            columns=self.wide,
            values=self.value("embeddings.tokens")[None],
            reads=("Ids",),
            _explain=explain,
            _ask=lambda _: Question(
                "The same word stands in a text twice. Do its two rows differ here?",
                ("They differ", "They are the same"),
                1,
                "A row depends on the id alone. What differs, place and neighbours, is still to come.",
            ),
        )

    def _bigram_vectors(self) -> Step:
        import torch

        from txcls.model import HashedBigrams

        ngram = self.model.embeddings.ngram
        table, project = array(ngram.table.weight), array(ngram.project.weight)
        rows = [int(row) for row in ngram.rows(torch.tensor([self.ids]))[0]]
        forward = type(ngram).forward
        hashed = isinstance(ngram, HashedBigrams)
        pick = "h" if hashed else "k"

        def explain(_: int, i: int, d: int) -> Arithmetic:
            pair = (self.ids[i - 1] if i else PAD, self.ids[i])
            made = summed_products(
                f"b_{{{i + 1},{d}}}",
                rf"\sum_n G_{{{rows[i]},n}}\,P_{{{d},n}}",
                table[rows[i]],
                project[d],
                headers=("G", "P"),
                labels=dimensions(table.shape[1]),
            )
            lead = rf"{pick}({pair[0]},\,{pair[1]}) &= {rows[i]}"
            return replace(made, lines=(lead, *made.lines))

        if hashed:
            chosen = f"A hash picks one of {len(table):,} rows of a table, which a projection widens to D numbers."
            question = Question(
                f"The first token, “{self.names[0]}”, has no left neighbour. What is its row?",
                ("Zeros", "A row for the pair of padding and itself", "The same as its token vector"),
                1,
                "The hash is given the id of padding, 0, as the left neighbour: beginning a text is a pair like any "
                "other.",
            )
        else:
            unknown = sum(row == len(table) - 1 for row in rows)
            chosen = (
                f"The {len(table) - 1:,} pairs that are most frequent in the training texts have a table row each, and "
                "k says which; a projection widens it to D numbers. All others share the last row, of zeros: "
                f"{unknown or 'none'} of the {len(rows):,} here."
            )
            question = Question(
                "A pair of words that no training text had side by side: what is its vector?",
                ("Zeros", "The sum of both token vectors", "The vector of the most similar pair"),
                0,
                "All pairs that are not known share the last row, which stays at zero: they add nothing to the token.",
            )
        return Step(
            "bigrams",
            "Bigram vectors",
            "Each token with its left neighbour is a pair, and pairs have vectors too: “new york” is more than “new” "
            f"and “york”. {chosen}",
            rf"b_i = P\,G_{{{pick}(id_{{i-1}},\,id_i)}}",
            (snippet(type(ngram).rows, "previous =", "return"), snippet(forward, "vectors = ", "vectors = "),
             snippet(forward, "projected")),
            rows=self.tokens,
            columns=self.wide,
            values=self.value("embeddings.ngrams")[None],
            reads=("Ids",),
            _explain=explain,
            _ask=lambda _: question,
        )  # fmt: skip

    def _position_vectors(self) -> Step:
        from txcls.model import sinusoidal_encoding

        kind, d_model = self.config.positions, self.config.d_model
        table = array(self.model.embeddings.positional)

        def explain(_: int, i: int, d: int) -> Arithmetic:
            if kind == "learned":
                return looked_up(f"p_{{{i + 1},{d}}}", f"PE_{{{i},{d}}}", float(table[i, d]))
            even = d // 2 * 2
            angle = i / 10_000.0 ** (even / d_model)
            name, value = (r"\sin", math.sin(angle)) if d == even else (r"\cos", math.cos(angle))
            lines = equals(
                f"p_{{{i + 1},{d}}}",
                rf"{name}\left({i} / 10000^{{{even}/{d_model}}}\right)",
                rf"{name}({number(angle)})",
                number(value),
            )
            return Arithmetic(lines, value)

        learned = kind == "learned"
        code = [snippet(type(self.model.embeddings).forward, "x = x + self.positions")]
        if not learned:
            code.insert(0, snippet(sinusoidal_encoding, "position =", "encoding[:, 1::2]"))
        return Step(
            "positions",
            "Position vectors",
            "Attention by itself would not notice if the words were shuffled. So each place has a vector, "
            + ("learned in training: " if learned else "made of sines and cosines of slower and slower waves: ")
            + "row i is the same in every text, whatever word stands there. The formula counts places from 0.",
            r"p_i = PE_{i-1}"
            if learned
            else r"PE_{pos,\,2m} = \sin\frac{pos}{10000^{2m/D}}, \quad PE_{pos,\,2m+1} = \cos\frac{pos}{10000^{2m/D}}",
            tuple(code),
            rows=self.tokens,
            columns=self.wide,
            values=self.value("embeddings.positions")[None],
            reads=("Ids",),
            _explain=explain,
            _ask=lambda _: Question(
                "If two words of the text changed places, would this matrix change?",
                ("Yes, their two rows", "Yes, all rows", "No"),
                2,
                "It depends on the number of the place alone.",
            ),
        )

    # From the last layer to the answer

    def _end(self, before: Step) -> list[Step]:
        from txcls.model import Encoder

        steps: list[Step] = []
        if self.config.norm == "pre":
            last = self.norm_step("norm", "Final norm", self.model.norm, before, None)
            normed = snippet(Encoder.read, "normed: Tensor")
            steps.append(replace(last, code=(normed, *last.code)))
        steps += self._pooling((steps or [before])[-1])
        pooled = steps[-1]
        if self.config.phrases:
            steps.append(self._phrase_votes())
        return steps + self._answer(pooled)

    def _pooling(self, before: Step) -> list[Step]:
        from txcls.model import Pooling

        states, pooled, weights = before.cells(), self.value("pooled"), self.traced.pooling
        pool, kind = self.model.pool, self.config.pooling
        masks = self.config.mask_padding and not self.config.pool_padding
        real = np.array([index != PAD or not masks for index in self.ids])  # T
        steps: list[Step] = []
        if weights is None:
            which = "class token" if kind == "class_token" else "first token"
            return [
                Step(
                    "pooled",
                    f"Pooling: the {which}",
                    f"The vector of the {which} stands for the whole text; by now it has had every chance to look at "
                    "the others.",
                    r"t = x_1",
                    (snippet(Pooling.forward, "if self.kind in", "return"),),
                    rows=self.text,
                    columns=self.wide,
                    values=pooled[None, None],
                    reads=(before.title,),
                    _explain=lambda _, __, d: looked_up(f"t_{{{d}}}", f"x_{{1,{d}}}", float(states[0, d])),
                    _ask=lambda _: self.which_token(
                        "Which token's vector is taken for the text?",
                        [1.0, *[0.0] * (len(self.names) - 1)],
                        lambda _: "The first one, whatever it is.",
                    ),
                )
            ]
        if kind == "attention":
            score = array(pool.score.weight)[0]
            raw = (states.astype(np.float64) @ score.astype(np.float64)).astype(np.float32)  # T
            raw = np.where(real, raw, -np.inf).astype(np.float32)
            steps.append(
                Step(
                    "pool_scores",
                    "Pooling: scores",
                    "A trained vector asks each token how much it has to say about the class.",
                    r"a_i = w \cdot y_i",
                    (snippet(Pooling.forward, "weights = self.score"),),
                    rows=self.tokens,
                    columns=self.text,
                    values=raw[None, :, None],
                    reads=(before.title,),
                    _explain=lambda _, i, __: (
                        summed_products(
                            f"a_{{{i + 1}}}",
                            rf"\textstyle\sum_d w_d\,y_{{{i + 1},d}}",
                            score,
                            states[i],
                            headers=("w", "y"),
                            labels=dimensions(self.config.d_model),
                        )
                        if real[i]
                        else Arithmetic(equals(f"a_{{{i + 1}}}", r"-\infty"), -math.inf)
                    ),
                    _ask=lambda _: self.which_token(
                        "Which token gets the highest score?", raw.tolist(), lambda n: f"It gets {raw[n]:.4f}."
                    ),
                )
            )
        scores = steps[-1].cells()[:, 0] if steps else np.where(real, 0.0, -np.inf).astype(np.float32)
        steps.append(
            Step(
                "pool_weights",
                "Pooling: weights",
                "Softmax makes shares of the scores: how much each token counts in the vector of the text."
                if kind == "attention"
                else "All tokens count the same: the mean is the case of equal scores.",
                r"\alpha_i = \frac{e^{a_i}}{\sum_m e^{a_m}}"
                if kind == "attention"
                else r"\alpha_i = \frac{e^0}{\sum_m e^0} = \frac{1}{n}",
                (snippet(Pooling.forward, "if real is not None", "pattern = "),),
                rows=self.tokens,
                columns=self.text,
                values=weights[None, :, None],
                share=True,
                reads=(steps[-1].title if steps else before.title,),
                _explain=lambda _, i, __: softmax_share(
                    rf"\alpha_{{{i + 1}}}",
                    rf"\frac{{e^{{a_{{{i + 1}}}}}}}{{\sum_m e^{{a_m}}}}",
                    scores,
                    i,
                    labels=self.token_labels(),
                ),
                _ask=lambda _: self.share_question(weights, whole=True) if kind == "attention" else None,
            )
        )
        steps.append(
            Step(
                "pooled",
                "Pooling: one vector for the text",
                "The tokens' vectors are added up with these weights. T vectors have become one, and the length of the "
                "text is forgotten.",
                r"t = \sum_i \alpha_i\,y_i",
                (snippet(Pooling.forward, "mean: Tensor"),),
                rows=self.text,
                columns=self.wide,
                values=pooled[None, None],
                reads=(before.title, steps[-1].title),
                _explain=lambda _, __, d: summed_products(
                    f"t_{{{d}}}",
                    rf"\textstyle\sum_i \alpha_i\,y_{{i,{d}}}",
                    weights,
                    states[:, d],
                    headers=("α", "y"),
                    labels=self.token_labels(),
                ),
                _ask=lambda _: of_numbers(
                    "How many numbers are left of the whole text?",
                    self.config.d_model,
                    (len(self.names) * self.config.d_model, len(self.names), self.classes.size),
                    f"D = {self.config.d_model}, for a text of any length.",
                ),
            )
        )
        return steps

    def _phrase_votes(self) -> Step:
        from txcls.model import Phrases

        votes = self.value("phrases.votes")  # T C
        found = phrases_of(self.model.phrases, self.ids)
        n = max(len(found), int(self.model.phrases.fewest))
        root = math.sqrt(n)
        longest, n_known = self.model.phrases.longest, len(self.model.phrases.known)

        def explain(_: int, i: int, c: int) -> Arithmetic:
            ending = [one for one in found if one.last == i]
            own = np.array([float(one.votes[c]) for one in ending])
            total = float(own.sum())
            symbol = f"v_{{{i + 1},{c + 1}}}"
            if not ending:
                return Arithmetic(equals(symbol, number(0.0)), 0.0)
            written = " + ".join(map(number, own)).replace("+ -", "- ")
            lines = equals(
                symbol,
                rf"\tfrac{{1}}{{\sqrt n}} \textstyle\sum_p u_{{p,{c + 1}}}",
                rf"\frac{{{written}}}{{\sqrt{{{n}}}}}",
                rf"\frac{{{number(total)}}}{{{number(root)}}}",
                number(total / root),
            )
            labels = tuple(" ".join(self.names[one.first : one.last + 1]) for one in ending)
            return Arithmetic(lines, total / root, ("u",), labels, own[:, None])

        best = int(np.argmax(votes.sum(axis=0)))
        return Step(
            "phrases",
            "Votes of phrases",
            f"Beside the Transformer stands a linear model: {n_known:,} phrases of up to {longest} tokens that are "
            "frequent in the training texts have a number u for each class. The numbers of those that end at a token "
            f"are added up, and divided by the root of n, which is {n:,} here: how many the text holds"
            + (f", {len(found):,}, or what a short training text holds" if n > len(found) else "")
            + ". They were fitted by themselves; no layer has a part in this.",
            r"v_{i,c} = \frac{1}{\sqrt n} \sum_{p \text{ ends at } i} u_{p,c}",
            (snippet(Phrases.rows, "for n in range", "found.append"), snippet(Phrases.by_token, "rows = ", "votes: ")),
            rows=self.tokens,
            columns=self.classes,
            values=votes[None],
            reads=("Ids",),
            _explain=explain,
            _ask=lambda _: self.which_token(
                f"At which token do the phrases end that vote the most for {self.classes.names[best]}?",
                votes[:, best].tolist(),
                lambda n: f"Their votes come to {votes[n, best]:.4f}.",
            ),
        )

    def _answer(self, before: Step) -> list[Step]:
        import torch

        from txcls.model import Phrases, TextClassifier

        head, classes = self.model.head, self.classifier.classes
        weight, bias = array(head.weight), array(head.bias)
        pooled, logits = before.cells()[0], self.value("logits")
        calibration = self.classifier.checkpoint.calibration
        surprise = np.maximum(-log_softmax(logits[None])[0], 0.0)  # C
        plain = np.exp(-surprise)  # C
        calibrated = self.classifier.calibrated(torch.from_numpy(logits)[None])[0].numpy()  # C
        best = int(np.argmax(logits))
        votes = self.value("phrases.votes").sum(axis=0, dtype=np.float64) if self.config.phrases else None  # C
        offset = array(self.model.phrases.bias) if self.config.phrases else None  # C
        axes: dict[str, Any] = {"rows": self.classes, "columns": self.text}

        def percent(value: float) -> str:
            return f"{value:.1%}".replace("%", " %")

        def score(_: int, c: int, __: int) -> Arithmetic:
            made = summed_products(
                rf"\ell_{{{c + 1}}}",
                rf"\textstyle\sum_d W_{{{c + 1},d}}\,t_d + b_{{{c + 1}}}"
                + ("" if votes is None else rf" + s_{{{c + 1}}}"),
                weight[c],
                pooled,
                headers=("W", "t"),
                labels=dimensions(self.config.d_model),
                bias=float(bias[c]),
            )
            if votes is None or offset is None:
                return made
            said = added(
                f"s_{{{c + 1}}}", [rf"\sum_i v_{{i,{c + 1}}}", f"b'_{{{c + 1}}}"], [votes[c], float(offset[c])]
            )
            total = added("", ["", ""], [made.value, said.value])
            return replace(made, lines=(*said.lines, *made.lines[:-1], *total.lines[1:]), value=total.value)

        def share(_: int, c: int, __: int) -> Arithmetic:
            formula = rf"\frac{{e^{{\ell_{{{c + 1}}}}}}}{{\sum_m e^{{\ell_m}}}}"
            return softmax_share(f"P_{{{c + 1}}}", formula, logits, c, labels=classes, header="logit")

        def corrected(_: int, c: int, __: int) -> Arithmetic:
            scores = -((surprise / calibration.temperature) ** calibration.power)
            made = softmax_share(
                f"P'_{{{c + 1}}}",
                rf"\frac{{e^{{a_{{{c + 1}}}}}}}{{\sum_m e^{{a_m}}}}",
                scores,
                c,
                labels=classes,
                header="a",
            )
            fraction = rf"{number(surprise[c])} / {calibration.temperature:.4f}"
            return replace(
                made,
                lines=(
                    rf"s_{{{c + 1}}} &= -\ln P_{{{c + 1}}} = {number(surprise[c])}",
                    rf"a_{{{c + 1}}} &= -({fraction})^{{{calibration.power:.4f}}} = {number(scores[c])}",
                    *made.lines,
                ),
            )

        return [
            Step(
                "logits",
                "Logits",
                "Each class has a trained vector. Its dot product with the vector of the text, plus a bias, is the "
                "score of the class, any number from minus to plus infinity."
                + (
                    "" if votes is None else " What phrases say of it, s, is added: the votes of all tokens and a bias."
                ),
                r"\ell_c = W_c \cdot t + b_c" + ("" if votes is None else r" + s_c, \quad s_c = \sum_i v_{i,c} + b'_c"),
                (snippet(TextClassifier.forward, "scores = self.head", "scores = self.head"),)
                + (
                    ()
                    if votes is None
                    else (
                        snippet(Phrases.forward, "votes = ", "out: "),
                        snippet(TextClassifier.forward, "scores = scores + self.phrases"),
                    )
                ),
                values=logits[None, :, None],
                reads=(before.title, *(() if votes is None else ("Votes of phrases",))),
                _explain=score,
                _ask=lambda _: which(
                    "Which class wins?", classes, logits.tolist(), lambda n: f"Its logit is {logits[n]:.4f}."
                ),
                **axes,
            ),
            Step(
                "class_softmax",
                "Softmax: probabilities",
                "The scores become shares that add up to 1 over all classes, here still without calibration.",
                r"P_c = \frac{e^{\ell_c}}{\sum_m e^{\ell_m}}",
                (snippet(log_softmax, "shifted =", "return"),),
                values=plain.astype(np.float32)[None, :, None],
                share=True,
                reads=("Logits",),
                _explain=share,
                _ask=lambda _: of_bins(f"How probable is {classes[best]} by softmax alone?", float(plain[best])),
                **axes,
            ),
            Step(
                "calibrated",
                "Calibrated probabilities",
                "The less probable a class seems to the model, the more it would be surprised: by s nats. Surprise is "
                "divided by a temperature τ and raised to a power κ, and softmax makes shares of it again. On "
                "validation texts τ and κ were fitted so that of the answers given 90 %, 90 % are right. The ranking "
                "stays as it was. This is the answer.",
                r"s_c = -\ln P_c, \quad a_c = -\left(\frac{s_c}{\tau}\right)^{\kappa}, \quad "
                r"P'_c = \frac{e^{a_c}}{\sum_m e^{a_m}}",
                (
                    snippet(calibrated_log_probabilities, "surprise =", "return"),
                    snippet(calibrated_probabilities, "probabilities:"),
                ),
                values=calibrated.astype(np.float32)[None, :, None],
                share=True,
                reads=("Softmax: probabilities",),
                _explain=corrected,
                _ask=lambda _: Question(
                    f"With τ = {calibration.temperature:.2f} and κ = {calibration.power:.2f}: what becomes of "
                    f"{classes[best]}'s {percent(plain[best])}?",
                    ("It rises", "It falls", "It stays"),
                    0 if calibrated[best] > plain[best] else 1 if calibrated[best] < plain[best] else 2,
                    f"It becomes {percent(calibrated[best])}.",
                ),
                **axes,
            ),
        ]
