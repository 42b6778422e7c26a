"""The induction scores of a model with a planted induction head."""

from pathlib import Path

import torch

from tests.conftest import make_language_model
from txcls.inspection.induction import measure_induction
from txcls.model import LanguageModel, SelfAttention


class InductionHead(SelfAttention):
    """Attention in which every token attends to the token after its own earlier occurrence, if there is one."""

    def forward(self, x: torch.Tensor, mask: object, cache: object = None) -> torch.Tensor:
        same = (x[:, :, None] - x[:, None]).abs().amax(-1) < 1e-4  # B T T: equal states are equal tokens
        earlier = torch.tril(same, diagonal=-1).roll(1, dims=2)  # the token after it
        weights = earlier / earlier.sum(-1, keepdim=True).clamp(min=1)
        weights = torch.where(earlier.any(-1, keepdim=True), weights, torch.eye(x.shape[1]))
        pattern = self.pattern(weights[:, None].expand(-1, self.n_heads, -1, -1))
        return pattern[:, 0] @ x


def test_a_planted_induction_head_has_a_high_score(tmp_path: Path) -> None:
    model = make_language_model(tmp_path / "lm", positions="none", n_layers=1, max_length=24).model
    assert isinstance(model, LanguageModel)
    planted = InductionHead(model.config)
    planted.load_state_dict(model.layers[0].attn.state_dict())
    planted.pattern = model.layers[0].attn.pattern
    model.layers[0].attn = planted
    with torch.no_grad():  # only attention contributes, with large values
        model.layers[0].ff.contract.weight.zero_()
        model.embeddings.token.weight.copy_(torch.nn.functional.normalize(torch.randn_like(model.output_matrix), dim=1))
    induction = measure_induction(model, n=20)
    assert induction.heads[0][0] > 0.8 > 0.2 > induction.even  # below 1, since a few tokens occur twice within a half
    assert induction.second < induction.first
