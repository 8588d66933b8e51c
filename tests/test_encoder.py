"""The encoder against closed forms and symmetries, on random weights of a small size."""

import numpy as np
import pytest

from causalrank.encoder import attention_weights, encode, gelu, layer_count, layer_norm

WORDS, POSITIONS, HIDDEN, INNER, LAYERS, HEADS = 11, 9, 6, 8, 2, 3
EPS = 1e-12
IDS = np.array([3, 0, 10, 5, 7])


def random_weights() -> dict[str, np.ndarray]:
    shapes = {
        "embeddings.word_embeddings": (WORDS, HIDDEN),
        "embeddings.position_embeddings": (POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings": (2, HIDDEN),
        "embeddings.LayerNorm": (HIDDEN,),
    }
    for layer in range(LAYERS):
        block = f"encoder.layer.{layer}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{block}.attention.{name}"] = (HIDDEN, HIDDEN)
        shapes[f"{block}.attention.output.LayerNorm"] = (HIDDEN,)
        shapes[f"{block}.intermediate.dense"] = (INNER, HIDDEN)
        shapes[f"{block}.output.dense"] = (HIDDEN, INNER)
        shapes[f"{block}.output.LayerNorm"] = (HIDDEN,)
    random = np.random.default_rng(0)
    drawn = {f"{name}.weight": random.normal(size=shape) for name, shape in shapes.items()}
    drawn |= {f"{name}.bias": random.normal(size=shape[0]) for name, shape in shapes.items()}
    return {name: values.astype(np.float32) for name, values in drawn.items()}


@pytest.fixture
def weights() -> dict[str, np.ndarray]:
    return random_weights()


def test_layer_norm_of_two_columns_is_a_sign():
    # mean (a + b)/2 and deviation |a - b|/2 leave (a - b)/|a - b|.
    x = np.array([[5.0, 1.0], [-2.0, 7.0]])
    scale, shift = np.array([2.0, 3.0]), np.array([0.5, -0.5])
    expected = np.array([[1, -1], [-1, 1]]) * scale + shift
    np.testing.assert_allclose(layer_norm(x, scale, shift, 0.0), expected, rtol=1e-15)
    assert layer_norm(x, scale, shift, 12.0)[0, 0] == 2 / np.sqrt(4 + 12) * 2 + 0.5


def test_gelu_against_the_normal_distribution():
    assert gelu(np.array(0.0)) == 0
    x = np.array([0.5, 1.0, 3.0])
    np.testing.assert_allclose(gelu(x) + gelu(-x), x * (2 * _normal(x) - 1), rtol=1e-14)
    np.testing.assert_allclose(gelu(x), x * _normal(x), rtol=1e-14)


def _normal(x: np.ndarray) -> np.ndarray:
    """Distribution function of the standard normal, to a digit or so of double precision."""
    nodes, masses = np.polynomial.legendre.leggauss(40)
    inside = np.exp(-((x[:, None] * (nodes + 1) / 2) ** 2) / 2) @ masses
    return 0.5 + x / 2 * inside / np.sqrt(2 * np.pi)


def test_attention_weights_are_a_softmax():
    random = np.random.default_rng(1)
    q, k = random.normal(size=(2, HEADS, 7, 4))
    mixing = attention_weights(q, k)
    # N terms summed and one division: at most (N + 1) rounding errors.
    np.testing.assert_allclose(mixing.sum(axis=-1), 1, rtol=8 * np.finfo(float).eps)
    ratio = np.log(mixing[1, 2, 3] / mixing[1, 2, 5])
    assert ratio == pytest.approx(q[1, 2] @ (k[1, 3] - k[1, 5]) / 2, rel=1e-12)
    # Scores past the range of exp.
    assert np.isfinite(attention_weights(1e3 * q, k)).all()


def test_first_layer_by_hand(weights):
    encoding = encode(weights, IDS, HEADS, EPS)
    head_dim = HIDDEN // HEADS
    assert encoding.q.shape == (LAYERS, HEADS, len(IDS), head_dim)
    assert encoding.q.dtype == encoding.last_hidden_state.dtype == np.float64
    wide = {name: values.astype(float) for name, values in weights.items()}
    token, head, column = 2, 1, 1
    x = (
        wide["embeddings.word_embeddings.weight"][IDS[token]]
        + wide["embeddings.position_embeddings.weight"][token]
        + wide["embeddings.token_type_embeddings.weight"][0]
    )
    x = (x - x.mean()) / x.std()
    x = x * wide["embeddings.LayerNorm.weight"] + wide["embeddings.LayerNorm.bias"]
    for part, name in ((encoding.q, "query"), (encoding.k, "key"), (encoding.v, "value")):
        name = f"encoder.layer.0.attention.self.{name}"
        row = head * head_dim + column
        expected = wide[f"{name}.weight"][row] @ x + wide[f"{name}.bias"][row]
        assert part[0, head, token, column] == pytest.approx(expected, rel=1e-11)


def test_permuting_the_tokens_permutes_the_output_when_positions_are_equal(weights):
    weights["embeddings.position_embeddings.weight"][:] = 0
    order = np.array([4, 2, 0, 1, 3])
    straight, permuted = encode(weights, IDS, HEADS, EPS), encode(weights, IDS[order], HEADS, EPS)
    for name in ("q", "k", "v"):
        expected = getattr(straight, name)[:, :, order]
        np.testing.assert_allclose(getattr(permuted, name), expected, rtol=1e-10, atol=1e-12)
    expected = straight.last_hidden_state[order]
    np.testing.assert_allclose(permuted.last_hidden_state, expected, rtol=1e-10, atol=1e-12)


def test_positions_matter(weights):
    straight, reversed_ = encode(weights, IDS, HEADS, EPS), encode(weights, IDS[::-1], HEADS, EPS)
    assert not np.allclose(straight.q[0, :, ::-1], reversed_.q[0])


def test_layers_are_counted_by_number_not_by_name_order():
    assert layer_count({f"encoder.layer.{layer}.x": np.empty(0) for layer in range(12)}) == 12


def test_errors_say_what_is_wrong(weights):
    with pytest.raises(ValueError, match="token 11 is outside the vocabulary of 11"):
        encode(weights, np.array([1, 11]), HEADS, EPS)
    with pytest.raises(ValueError, match="token -1 is outside"):
        encode(weights, np.array([-1]), HEADS, EPS)
    with pytest.raises(ValueError, match="10 tokens, but the encoder has 9 positions"):
        encode(weights, np.zeros(10, int), HEADS, EPS)
    with pytest.raises(ValueError, match=r"shape \(0,\)"):
        encode(weights, np.zeros(0, int), HEADS, EPS)
    with pytest.raises(ValueError, match="hidden size 6 is not a multiple of 4 heads"):
        encode(weights, IDS, 4, EPS)
    del weights["encoder.layer.1.output.dense.bias"]
    with pytest.raises(
        ValueError, match=r"missing weight 'encoder\.layer\.1\.output\.dense\.bias'"
    ):
        encode(weights, IDS, HEADS, EPS)
    with pytest.raises(ValueError, match="no weight's name begins with"):
        layer_count({"bert.pooler": np.empty(0)})
