"""Greedy search on models without a network."""

import torch

from regard.decode.greedy import greedy
from tests.decode.table_models import BOS, EOS, MAX_LENGTHS, SENTENCES, TableModel, check_hypothesis, make_prompt


def test_greedy_takes_likeliest_token() -> None:
    for seed in range(20):
        table = TableModel(5, seed)
        for sentence, hypothesis in zip(
            SENTENCES,
            greedy(table.step, table.start(SENTENCES), make_prompt(4), eos=EOS, max_lengths=MAX_LENGTHS),
            strict=True,
        ):
            text: tuple[int, ...] = ()
            while len(text) < MAX_LENGTHS[sentence] and EOS not in text:
                text += (int(table.logits(sentence, (BOS, *text)).argmax()),)
            assert hypothesis.tokens == text
            check_hypothesis(hypothesis, table, sentence, 1.0)


def test_no_step_after_maximum_length() -> None:
    table = TableModel(5, 3)
    (hypothesis,) = greedy(
        table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[3], suppress_tokens=torch.tensor([EOS])
    )
    assert len(hypothesis.tokens) == len(table.steps) == 3
    assert not hypothesis.ended
    table = TableModel(5, 3)
    greedy(
        table.step,
        table.start([0, 1]),
        make_prompt(2),
        eos=EOS,
        max_lengths=[1, 3],
        suppress_tokens=torch.tensor([EOS]),
    )
    assert table.steps == [(2, 1), (1, 1), (1, 1)]
