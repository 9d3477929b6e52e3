"""Residual connections, norms and the scale in a stack that is not trained."""

from regard.lectures.tricks import measure_softmax, measure_stack


def test_gradient_vanishes_without_residual_connections_and_explodes_without_norms() -> None:
    both = measure_stack(8, has_residual=True, has_norm=True)[1]
    assert 0.1 < both < 10
    assert measure_stack(8, has_residual=False, has_norm=False)[1] < both / 1000
    assert measure_stack(8, has_residual=True, has_norm=False)[1] > both * 10


def test_scale_keeps_the_gradient_of_the_softmax_independent_of_the_key_size() -> None:
    small, large = (measure_softmax(key_dim, key_dim**-0.5)[1] for key_dim in (4, 512))
    assert abs(small - large) < 0.05
    assert measure_softmax(512, 1)[1] < large / 5
