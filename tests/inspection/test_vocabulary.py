import numpy as np
import pytest

from txcls.inference.predictor import Predictor
from txcls.inspection.vocabulary import nearest_tokens


def test_nearest_tokens_have_the_highest_cosine_similarity(classifier: Predictor) -> None:
    index = classifier.tokenizer.vocabulary.id_of("bank")
    vectors = classifier.checkpoint.model.embeddings.token.weight.detach().double().numpy()
    expected = [
        (other, float(vectors[index] @ vector / np.linalg.norm(vectors[index]) / np.linalg.norm(vector)))
        for other, vector in enumerate(vectors)
        if other > 3 and other != index
    ]
    expected.sort(key=lambda pair: -pair[1])
    nearest = nearest_tokens(classifier, index, n=5)
    assert [index for index, _ in nearest] == [index for index, _ in expected[:5]]
    assert [cosine for _, cosine in nearest] == pytest.approx([cosine for _, cosine in expected[:5]], abs=1e-5)
    with pytest.raises(IndexError):
        nearest_tokens(classifier, 10**6)
