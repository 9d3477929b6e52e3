"""Text that goes on where a prompt stops."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.config.run import AnyTokenizer, Bpe, ByteBpe, Unigram
from regard.models.decoder_only import DecoderOnly
from regard.models.state import DecodingState
from regard.pipeline.writer import Writer
from regard.text.learn import learn
from regard.text.vocabularies import TokenizerPair
from tests.pipeline.made import TEXTS, tokenizer, vocabularies, writer_settings, writing_model


def made(**changes: object) -> Writer:
    settings = writer_settings(**changes)
    return Writer(writing_model(settings), vocabularies(), settings)


@pytest.mark.parametrize("kind", [ByteBpe(vocabulary=300), Unigram(vocabulary=60), Bpe(vocabulary=60)])
def test_greedy_writes_what_the_model_says(kind: AnyTokenizer) -> None:
    words = learn(TEXTS, kind)  # spaces belong to the piece before, to the piece after, or to neither
    settings = writer_settings(**{"tokens.vocabulary": words.size})
    writer = Writer(writing_model(settings), TokenizerPair.joint(words), settings)
    for prompt in ("Two young", "A", "Ein kleines"):
        text = "".join(writer.write(prompt, tokens=8, temperature=0))
        ids = [words.specials.bos, *words.encode(prompt).ids]
        banned = sorted(words.specials.control - {words.specials.eos, words.specials.unk})
        written: list[int] = []
        while len(written) < 8 and words.specials.eos not in written:
            with torch.no_grad():
                logits = writer.model(torch.tensor([[*ids, *written]]))[0, -1]
            logits[banned] = -torch.inf
            written.append(int(logits.argmax()))
        assert prompt + text == words.decode([*ids, *written])
        assert text


def test_a_seed_decides_and_no_seed_is_free() -> None:
    writer = made()
    texts = ["".join(writer.write("A", tokens=20, temperature=1.5, seed=seed)) for seed in (1, 1, 2, None, None)]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 4


def test_pieces_are_text_from_the_first_on(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = made()
    step = DecoderOnly.step

    def watched(self: DecoderOnly, tokens: Tensor, state: DecodingState) -> Tensor:
        assert torch.is_inference_mode_enabled()
        return step(self, tokens, state)

    monkeypatch.setattr(DecoderOnly, "step", watched)
    pieces = writer.write("A", tokens=30, seed=3)
    assert isinstance(pieces, Iterator)
    assert not torch.is_inference_mode_enabled()
    first = next(pieces)
    assert first
    assert not torch.is_inference_mode_enabled()  # whoever reads the pieces is not in it
    whole = first + "".join(pieces)
    assert whole == "".join(writer.write("A", tokens=30, seed=3))


def test_the_model_is_left_as_it_was() -> None:
    writer = made()
    quiet = "".join(writer.write("A", tokens=10, seed=1))
    writer.model.train()
    assert "".join(writer.write("A", tokens=10, seed=1)) == quiet
    assert all(module.training for module in writer.model.modules())
    pieces = writer.write("A", tokens=10, seed=1)
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    assert all(module.training for module in writer.model.modules())


def test_an_empty_prompt_begins_a_text() -> None:
    assert "".join(made().write(tokens=5, seed=1))


def test_learned_positions_end_somewhere() -> None:
    writer = made(**{"decoder.position.length": 16})
    read = 1 + len(tokenizer().encode("Two young").ids)
    most = 16 - read + 1
    assert "".join(writer.write("Two young", tokens=most, seed=1))
    with pytest.raises(RegardError, match=f"Ask for at most {most} tokens"):
        writer.write("Two young", tokens=most + 1)
    with pytest.raises(RegardError, match="Shorten the prompt"):
        writer.write("Two young men are outside near many bushes, and more", tokens=1)


def test_mistakes_are_told_at_once() -> None:
    writer = made()
    with pytest.raises(RegardError, match="temperature of -1"):
        writer.write("A", temperature=-1.0)
    with pytest.raises(RegardError, match="0 tokens cannot be written"):
        writer.write("A", tokens=0)
