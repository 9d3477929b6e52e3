"""Images as tokens: the colors are those with the least squared error, and encoding finds the nearest one."""

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.config.tokenizers import CharacterLevelConfig, CodebookConfig
from regard.data.codebook import Codebook, ColorCounter, learn_codebook
from regard.text.tokenizer import Tokenizer


def make_codebook(labels: tuple[str, ...] = ("boot", "high heel")) -> tuple[Tokenizer, Codebook]:
    colors = np.array([[0, 0, 0], [100, 100, 100], [255, 0, 0]])
    tokenizer = learn_codebook(colors, labels, CodebookConfig())
    return tokenizer, Codebook(tokenizer)


def test_pixels_become_the_nearest_colours_in_raster_order() -> None:
    tokenizer, codebook = make_codebook()
    image = np.array([[[0, 200], [250, 90]], [[0, 10], [20, 90]], [[9, 10], [20, 110]]], np.uint8)  # (3, 2, 2)
    tokens = codebook.encode(image)
    assert [tokenizer.vocabulary[token] for token in tokens] == ["#000000", "#ff0000", "#ff0000", "#646464"]
    assert codebook.decode(tokens, 2, 2)[0].tolist() == [[0, 0, 0], [255, 0, 0]]
    grays = codebook.encode(np.array([[[49, 51, 255]]], np.uint8))
    assert [tokenizer.vocabulary[token] for token in grays] == ["#000000", "#646464", "#646464"]
    assert codebook.encode(np.stack([image, image])).tolist() == [tokens.tolist()] * 2
    with pytest.raises(RegardError, match="not a color"):
        codebook.decode(np.array([tokenizer.specials.eos]), 1, 1)


def test_an_image_is_a_document_of_the_tokenizer() -> None:
    tokenizer, codebook = make_codebook()
    text = "<label:high heel>#000000 #646464 #ff0000"
    ids = [codebook.find_label("high heel"), *codebook.tokens.tolist()]
    assert tokenizer.encode_ids([text]) == [ids]


def test_labels() -> None:
    _, codebook = make_codebook()
    assert set(codebook.labels) == {"boot", "high heel"}
    with pytest.raises(RegardError, match="No training image had the label 'shoe'") as caught:
        codebook.find_label("shoe")
    assert "boot, high heel" in str(caught.value)
    with pytest.raises(RegardError, match="An image has no label"):
        codebook.find_label(None)
    _, unlabeled = make_codebook(())
    assert not unlabeled.labels
    assert unlabeled.find_label(None) >= 0
    with pytest.raises(RegardError, match="Remove it"):
        unlabeled.find_label("boot")


def test_a_tokenizer_of_text_is_no_codebook() -> None:
    from regard.text.learn import learn

    with pytest.raises(RegardError, match="no colors"):
        Codebook(learn(["some text"], CharacterLevelConfig()))


def test_colours_of_grey_and_of_coloured_images() -> None:
    counter = ColorCounter()
    with pytest.raises(RegardError, match="no image"):
        counter.find_colors(2)
    counter.add(np.array([[[0, 0, 1], [200, 201, 201]]], np.uint8))
    assert counter.find_colors(2).tolist() == [[0, 0, 0], [201, 201, 201]]
    colored = ColorCounter()
    colored.add(np.array([[[250, 250, 0]], [[0, 2, 0]], [[0, 1, 255]]], np.uint8))
    assert colored.find_colors(2).tolist() == [[0, 0, 255], [250, 1, 0]]
    assert len(colored.find_colors(9)) == 2, "there are no more colors"
