"""The steps inside a layer: norms, queries, keys, values, scores, mask, softmax, weighted sum, feed-forward."""

import math
from typing import Any

import numpy as np

from txcls.inspection.arithmetic import Arithmetic, added, equals, normalised, number, softmax_share, summed_products
from txcls.inspection.source import Source
from txcls.inspection.steps import Axis, Question, Reading, Step, array, dimensions, of_numbers, snippet, which
from txcls.inspection.tracing import FloatArray


class LayerSteps(Reading):
    """Makes the steps of the layers of one text."""

    def layer_steps(self, layer: int, before: Step) -> list[Step]:
        """All steps of a layer, counted from 0, that reads what the step before it gave."""
        block = self.model.layers[layer]
        pre = self.config.norm == "pre"
        at = f"layers.{layer}."
        steps: list[Step] = []
        if pre:
            steps.append(self.norm_step("norm_attn", "Norm before attention", block.norm_attn, before, layer))
        read = (steps or [before])[-1]
        steps += self._heads(layer, read.cells(), read.title)
        written = self.value(at + "attn_out")
        mid = self.value(at + "resid_mid") if pre else before.cells() + written
        steps.append(self._add("add_attn", "Add what attention wrote", layer, before, steps[-1], mid, "attn"))
        if not pre:
            steps.append(self.norm_step("norm_attn", "Norm after attention", block.norm_attn, steps[-1], layer))
        middle = steps[-1]
        if pre:
            steps.append(self.norm_step("norm_ff", "Norm before feed-forward", block.norm_ff, middle, layer))
        steps += self._feed_forward(layer, steps[-1])
        written = self.value(at + "ff_out")
        end = self.value(at + "resid_post") if pre else middle.cells() + written
        steps.append(self._add("add_ff", "Add what feed-forward wrote", layer, middle, steps[-1], end, "ff"))
        if not pre:
            steps.append(self.norm_step("norm_ff", "Norm after feed-forward", block.norm_ff, steps[-1], layer))
        return steps

    def norm_step(self, name: str, title: str, norm: Any, before: Step, layer: int | None) -> Step:
        """A LayerNorm of what the step before gave."""
        from txcls.model import LayerNorm

        given, weight, bias = before.cells(), array(norm.weight), array(norm.bias)
        tap = f"{'norm' if layer is None else f'layers.{layer}.{name}'}.out"
        return Step(
            name,
            title,
            "The D numbers of each token are moved to mean 0 and stretched to variance 1, then scaled and shifted by "
            "trained numbers g and b, one pair for each dimension. No token sees another here.",
            r"y_{i,d} = \frac{x_{i,d} - \mu_i}{\sqrt{\sigma_i^2 + 10^{-5}}} \cdot g_d + b_d",
            (snippet(LayerNorm.forward, "centred =", "normed"),),
            layer=layer,
            rows=self.tokens,
            columns=self.wide,
            values=self.value(tap)[None],
            reads=(before.title,),
            _explain=lambda _, i, d: normalised(
                f"y_{{{i + 1},{d}}}", given[i], d, weight=float(weight[d]), bias=float(bias[d])
            ),
            _ask=lambda _: Question(
                "Over which numbers are mean and variance taken?",
                ("Over the D numbers of one token", "Over the T tokens of one dimension", "Over the whole matrix"),
                0,
                "Each row by itself, so that a token's norm depends on no other token and on no other text. For "
                f"{self.who} the mean before was {given[self.focus].mean():.4f}, the standard deviation "
                f"{given[self.focus].std():.4f}.",
            ),
        )

    def _heads(self, layer: int, read: FloatArray, reads: str) -> list[Step]:
        """Queries, keys, values, scores, mask, softmax, weighted sum, and the projection of all heads together."""
        from txcls.model import SelfAttention

        attn, at = self.model.layers[layer].attn, f"layers.{layer}.attn."
        forward = SelfAttention.forward
        width = self.config.d_head
        q, k, v = (self.value(at + letter) for letter in "qkv")
        given, pattern, z = (self.value(at + tap) for tap in ("scores", "pattern", "z"))
        root = math.sqrt(width)
        allowed = ~np.isneginf(given)
        raw = np.where(allowed, given, q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) / root)
        raw = raw.astype(np.float32)
        split = snippet(SelfAttention._split_heads, "heads: Tensor", "return")
        projected = [
            self._projection(layer, letter, linear, read, reads, values, split)
            for letter, linear, values in (("q", attn.query, q), ("k", attn.key, k), ("v", attn.value, v))
        ]
        common: dict[str, Any] = {"layer": layer, "by_head": True, "rows": self.tokens}
        focus = self.focus

        def score(head: int, i: int, j: int) -> Arithmetic:
            return summed_products(
                f"S_{{{i + 1},{j + 1}}}",
                rf"\tfrac{{1}}{{\sqrt{{{width}}}}} \textstyle\sum_e q_{{{i + 1},e}}\,k_{{{j + 1},e}}",
                q[head, i],
                k[head, j],
                headers=("q", "k"),
                labels=dimensions(width),
                divisor=root,
            )

        def masked(head: int, i: int, j: int) -> Arithmetic:
            symbol = rf"\tilde S_{{{i + 1},{j + 1}}}"
            if allowed[head, i, j]:
                return Arithmetic(equals(symbol, f"S_{{{i + 1},{j + 1}}}", number(raw[head, i, j])), raw[head, i, j])
            return Arithmetic(equals(symbol, r"-\infty"), -math.inf)

        def share(head: int, i: int, j: int) -> Arithmetic:
            return softmax_share(
                f"A_{{{i + 1},{j + 1}}}",
                rf"\frac{{e^{{\tilde S_{{{i + 1},{j + 1}}}}}}}{{\sum_j e^{{\tilde S_{{{i + 1},j}}}}}}",
                given[head, i],
                j,
                labels=self.token_labels(),
            )

        def mixed(head: int, i: int, e: int) -> Arithmetic:
            return summed_products(
                f"z_{{{i + 1},{e}}}",
                rf"\textstyle\sum_j A_{{{i + 1},j}}\,v_{{j,{e}}}",
                pattern[head, i],
                v[head, :, e],
                headers=("A", "v"),
                labels=self.token_labels(),
            )

        blocked = int((~allowed[0]).sum())
        why = self._why_masked(blocked)
        scores = Step(
            "scores",
            "Scores",
            "Each query is multiplied with every key: the dot product is large where they point the same way. The "
            "division by √E keeps the numbers small enough for softmax to tell more than one token apart.",
            r"S_{ij} = \frac{q_i \cdot k_j}{\sqrt{E}}",
            (snippet(forward, "scores = (q / math.sqrt"),),
            columns=self.tokens,
            values=raw,
            reads=("Queries", "Keys"),
            _explain=score,
            _ask=lambda head: self.which_token(
                f"Whose key fits the query of {self.who} best?",
                raw[head, focus].tolist(),
                lambda n: f"Their score is {raw[head, focus, n]:.4f}, the largest in row {focus + 1}.",
            ),
            **common,
        )
        mask = Step(
            "mask",
            "Mask",
            "Where a token may not look, its score becomes minus infinity, which softmax turns into exactly 0. " + why,
            r"\tilde S_{ij} = \begin{cases} S_{ij} & \text{if } i \text{ may look at } j \\ -\infty & \text{otherwise} "
            r"\end{cases}",
            (
                snippet(type(self.model)._allowed, "real = self.real", "allowed = None if real is None"),
                *((snippet(type(self.model)._allowed, "if self.config.causal", "allowed = earlier"),)
                  if self.config.causal else ()),
                snippet(forward, "if allowed is not None", "masked_fill"),
            ),
            columns=self.tokens,
            values=given,
            reads=(scores.title,),
            _explain=masked,
            _ask=lambda _: of_numbers(
                f"How many of the {len(self.names)} × {len(self.names)} scores become minus infinity?",
                blocked,
                (0, len(self.names), len(self.names) * (len(self.names) - 1) // 2, len(self.names) ** 2 // 2),
                why,
            ),
            **common,
        )  # fmt: skip
        softmax = Step(
            "softmax",
            "Softmax: the attention pattern",
            "Each row becomes shares that add up to 1: how the token in that row divides its attention. A score that "
            "is larger by 1 gets 2.7 times the share.",
            r"A_{ij} = \frac{e^{\tilde S_{ij}}}{\sum_{m} e^{\tilde S_{im}}}",
            (snippet(forward, "pattern = self.pattern"),),
            columns=self.tokens,
            values=pattern,
            share=True,
            reads=(mask.title,),
            _explain=share,
            _ask=lambda head: self.share_question(pattern[head, focus]),
            **common,
        )
        lengths = np.linalg.norm(v, axis=2)  # H T
        weighted = Step(
            "weighted_sum",
            "Weighted sum of values",
            "Each token's new content in this head is the mean of all values, weighted by its row of the pattern. This "
            "is the one place where information moves between tokens.",
            r"z_i = \sum_j A_{ij}\,v_j",
            (snippet(forward, "z = self.z"),),
            columns=self.narrow,
            values=z,
            reads=(softmax.title, "Values"),
            _explain=mixed,
            _ask=lambda head: self.which_token(
                f"Whose value enters the sum of {self.who} with the greatest length?",
                (pattern[head, focus] * lengths[head]).tolist(),
                lambda n: (
                    f"Its weight {pattern[head, focus, n]:.4f} times the length of its value, "
                    f"{lengths[head, n]:.4f}, is the largest."
                ),
            ),
            **common,
        )
        return [*projected, scores, mask, softmax, weighted, self._project(layer, z)]

    def _projection(
        self,
        layer: int,
        letter: str,
        linear: Any,
        read: FloatArray,
        reads: str,
        values: FloatArray,
        split: Source,
    ) -> Step:
        from txcls.model import SelfAttention

        name, says = {
            "q": ("query", "what each token asks the others for"),
            "k": ("key", "what each token can be found by"),
            "v": ("value", "what each token passes on to those that look at it"),
        }[letter]
        plural = {"query": "Queries", "key": "Keys", "value": "Values"}[name]
        weight, bias = array(linear.weight), None if linear.bias is None else array(linear.bias)
        width, config = self.config.d_head, self.config
        upper = letter.upper()

        def explain(head: int, i: int, e: int) -> Arithmetic:
            row = head * width + e
            return summed_products(
                f"{letter}_{{{i + 1},{e}}}",
                rf"\textstyle\sum_d y_{{{i + 1},d}}\,W^{upper}_{{{row},d}}"
                + ("" if bias is None else f" + b_{{{row}}}"),
                read[i],
                weight[row],
                headers=("y", f"W^{upper}"),
                labels=dimensions(config.d_model),
                bias=None if bias is None else float(bias[row]),
            )

        questions = {
            "q": lambda _: of_numbers(
                "How many numbers does the query of one token have in one head?",
                width,
                (config.d_model, config.n_heads, len(self.names)),
                f"E = D / H = {config.d_model} / {config.n_heads} = {width}: the heads share the D numbers out.",
            ),
            "k": lambda _: Question(
                "Queries and keys read the same numbers. Are they therefore the same?",
                ("Yes", "No"),
                1,
                "Each has a matrix of its own: what a token asks for need not be what it can be found by.",
            ),
            "v": lambda _: Question(
                "In this step, does a token's value depend on the other tokens?",
                ("Yes, on all", "Yes, on those it attends to", "No"),
                2,
                "A row here is made of the same row before. Tokens mix in the weighted sum alone.",
            ),
        }
        return Step(
            name,
            plural,
            f"A trained matrix turns each token's D numbers into {plural.lower()}, {says}. The result is cut into H "
            "pieces of E numbers: one for each head.",
            rf"{letter}_i = W^{upper}\,y_i" + ("" if bias is None else f" + b^{upper}"),
            (snippet(SelfAttention.forward, f"{letter} = self.{letter}("), split),
            layer=layer,
            rows=self.tokens,
            columns=self.narrow,
            values=values,
            by_head=True,
            reads=(reads,),
            _explain=explain,
            _ask=questions[letter],
        )

    def _project(self, layer: int, z: FloatArray) -> Step:
        from txcls.model import SelfAttention

        output = self.model.layers[layer].attn.output
        weight, bias = array(output.weight), None if output.bias is None else array(output.bias)
        n_heads, width = z.shape[0], z.shape[2]
        joined = z.transpose(1, 0, 2).reshape(z.shape[1], -1)  # T D
        labels = tuple(f"head {head + 1}, {e}" for head in range(n_heads) for e in range(width))

        def explain(_: int, i: int, d: int) -> Arithmetic:
            return summed_products(
                f"o_{{{i + 1},{d}}}",
                rf"\textstyle\sum_m z_{{{i + 1},m}}\,W^O_{{{d},m}}" + ("" if bias is None else f" + b^O_{{{d}}}"),
                joined[i],
                weight[d],
                headers=("z", "W^O"),
                labels=labels,
                bias=None if bias is None else float(bias[d]),
            )

        def ask(_: int) -> Question | None:
            parts = [
                float(np.linalg.norm(weight[:, h * width : (h + 1) * width] @ z[h, self.focus])) for h in range(n_heads)
            ]
            return which(
                f"Which head writes the longest vector for {self.who}?",
                [f"head {head + 1}" for head in range(n_heads)],
                parts,
                lambda _: "Lengths: " + ", ".join(f"head {h + 1} {part:.4f}" for h, part in enumerate(parts)),
            )

        return Step(
            "project",
            "Concatenate and project",
            "The heads' results are laid side by side, D numbers again, and a matrix mixes them: this is what "
            "attention will write into the residual stream.",
            r"o_i = W^O\,[z^1_i; \dots; z^H_i]" + ("" if bias is None else " + b^O"),
            (snippet(SelfAttention.forward, "concatenated =", "written: Tensor"),),
            layer=layer,
            rows=self.tokens,
            columns=self.wide,
            values=self.value(f"layers.{layer}.attn_out")[None],
            reads=("Weighted sum of values",),
            _explain=explain,
            _ask=ask,
        )

    def _add(
        self, name: str, title: str, layer: int, stream: Step, written: Step, total: FloatArray, what: str
    ) -> Step:
        from txcls.model import Block

        pre = self.config.norm == "pre"
        old, new = stream.cells(), written.cells()
        symbol = "o" if what == "attn" else "u"
        tap = "resid_mid" if what == "attn" else "resid_post"
        marker = f"x = self.{tap}(x + " if pre else f"x = self.{tap}(self.norm"
        lengths = [float(np.linalg.norm(one[self.focus])) for one in (old, new)]
        return Step(
            name,
            title,
            "It is added to the residual stream, number by number: what was there stays, and later steps can still "
            "read it." + ("" if pre else " The sum is normalised in the next step."),
            f"x_i \\leftarrow x_i + {symbol}_i",
            (snippet(Block.forward, marker),),
            layer=layer,
            rows=self.tokens,
            columns=self.wide,
            values=total[None],
            reads=(stream.title, written.title),
            _explain=lambda _, i, d: added(
                f"x_{{{i + 1},{d}}}",
                [f"x_{{{i + 1},{d}}}", f"{symbol}_{{{i + 1},{d}}}"],
                [float(old[i, d]), float(new[i, d])],
            ),
            _ask=lambda _: which(
                f"For {self.who}: which is the longer vector?",
                ["what was there before", "what is added"],
                lengths,
                lambda _: f"What was there: {lengths[0]:.4f}; what is added: {lengths[1]:.4f}.",
            ),
        )

    def _feed_forward(self, layer: int, before: Step) -> list[Step]:
        from txcls.model import FeedForward

        ff, kind = self.model.layers[layer].ff, self.config.activation
        inner, outer = array(ff.expand.weight), array(ff.contract.weight)
        inner_bias, outer_bias = array(ff.expand.bias), array(ff.contract.bias)
        read, hidden = before.cells(), self.value(f"layers.{layer}.ff.hidden")
        function = {"relu": r"\mathrm{ReLU}", "gelu": r"\mathrm{GELU}", "gelu_tanh": r"\mathrm{GELU}"}[kind]
        silent = float((hidden[self.focus] <= 0).mean())

        def expanded(_: int, i: int, f: int) -> Arithmetic:
            total = float(read[i].astype(np.float64) @ inner[f].astype(np.float64)) + float(inner_bias[f])
            return summed_products(
                f"h_{{{i + 1},{f}}}",
                rf"{function}\left(\textstyle\sum_d y_{{{i + 1},d}}\,W^1_{{{f},d}} + b^1_{{{f}}}\right)",
                read[i],
                inner[f],
                headers=("y", "W¹"),
                labels=dimensions(self.config.d_model),
                bias=float(inner_bias[f]),
                after=(function, _activate(total, kind)),
            )

        def contracted(_: int, i: int, d: int) -> Arithmetic:
            return summed_products(
                f"u_{{{i + 1},{d}}}",
                rf"\textstyle\sum_f h_{{{i + 1},f}}\,W^2_{{{d},f}} + b^2_{{{d}}}",
                hidden[i],
                outer[d],
                headers=("h", "W²"),
                labels=dimensions(self.config.d_ff),
                bias=float(outer_bias[d]),
            )

        bins = ("less than a quarter", "a quarter to a half", "a half to three quarters", "more than three quarters")
        first = Step(
            "expand",
            "Feed-forward: expand",
            "Each token by itself: F trained detectors read its D numbers, and a non-linearity silences those that "
            "come out negative "
            + ("(ReLU: to 0)." if kind == "relu" else "(GELU: to nearly 0, gradually)."),
            rf"h_i = {function}(W^1 y_i + b^1)",
            (snippet(FeedForward.forward, "expanded = self.expand", "hidden = "),),
            layer=layer,
            rows=self.tokens,
            columns=Axis("F", "dimension", self.config.d_ff),
            values=hidden[None],
            reads=(before.title,),
            _explain=expanded,
            _ask=lambda _: Question(
                f"What share of the {hidden.shape[1]} detectors is silenced (0 or below) for {self.who}?",
                bins,
                min(int(silent * 4), 3),
                f"{silent:.1%} of them.".replace("%", " %"),
            ),
        )  # fmt: skip
        second = Step(
            "contract",
            "Feed-forward: contract",
            "A second matrix turns the F numbers back into D: each detector that fired adds its column.",
            r"u_i = W^2 h_i + b^2",
            (snippet(FeedForward.forward, "written: Tensor"),),
            layer=layer,
            rows=self.tokens,
            columns=self.wide,
            values=self.value(f"layers.{layer}.ff_out")[None],
            reads=(first.title,),
            _explain=contracted,
            _ask=lambda _: Question(
                "Does the feed-forward network move information from one token to another?",
                ("Yes", "No"),
                1,
                "Its two matrices work on one row at a time. Only attention moves information between rows.",
            ),
        )
        return [first, second]

    def _why_masked(self, blocked: int) -> str:
        reasons = []
        if self.config.causal:
            reasons.append("this model may not look at later tokens")
        if self.config.fixed_length and self.config.mask_padding:
            reasons.append("padding is kept out")
        if blocked:
            return f"Here {blocked:,} scores: {' and '.join(reasons)}."
        if not self.config.mask_padding:
            return "This recipe masks nothing, not even padding."
        return "Here none: the mask keeps padding out, and a text that is read alone has none."


def _activate(value: float, kind: str) -> float:
    """ReLU; GELU (Hendrycks & Gimpel 2016), exactly or by its tanh."""
    if kind == "relu":
        return max(value, 0.0)
    if kind == "gelu":
        return 0.5 * value * (1.0 + math.erf(value / math.sqrt(2.0)))
    return 0.5 * value * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (value + 0.044715 * value**3)))
