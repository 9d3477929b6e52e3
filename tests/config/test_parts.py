"""Settings of the parts of a model."""

from regard.config import codec
from tests.config.factories import preset_faults


def test_fields_that_do_not_fit_together_are_named_at_once() -> None:
    found = preset_faults("tiny", "encoder.attention.heads=3", "decoder.cross.key_value_heads=3", "d_model=127")
    assert (
        found["encoder.attention.heads"] == "is 3, which does not divide d_model = 127. Change heads, or set key_dim."
    )
    assert found["decoder.cross.key_value_heads"] == "is 3, which does not divide 4 heads. Use one of [1, 2, 4]."
    assert "encoder.position" in found
    odd = preset_faults("gpt2", "decoder.position.kind=rotary", "decoder.attention.key_dim=7")
    assert odd == {"decoder.position": "rotates pairs, but key_dim is 7. Use an even key_dim."}


def test_buckets_that_reach_beyond_the_distance_are_refused() -> None:
    found = preset_faults("gpt2", 'decoder.position={kind = "relative", buckets = 32, distance = 16}')
    assert found.keys() == {"decoder.position.distance"}
    codec.preset("gpt2", {"decoder.position": {"kind": "relative", "buckets": 32, "distance": 17}})
