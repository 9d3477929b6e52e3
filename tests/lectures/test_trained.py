"""The bundled models of toy worlds solve them, and their heads are read correctly."""

import random

import pytest
import torch

from regard.lectures import trained
from regard.lectures.worlds import TRAINED, WORLDS
from regard.look.document import Document
from regard.tasks.capabilities import TagsWords
from tests.look.schema import check


@pytest.mark.parametrize("world", [folder.name for folder in TRAINED.iterdir()])
def test_a_bundled_model_solves_its_world(world: str) -> None:
    _, validation = WORLDS[world].make(random.Random(1))
    model = trained.load_trained(world)
    texts, expected = map(list, zip(*validation, strict=True))
    if isinstance(model, TagsWords):
        outputs = [" ".join(text.labels) for text in model.tag(texts)]
    else:
        outputs = trained.translate(world, texts)
    if world == "dia":  # the pronoun is a matter of chance
        outputs, expected = ([text.split(" ", 1)[1] for text in part] for part in (outputs, expected))
    right = sum(map(str.__eq__, outputs, expected))
    assert right >= 0.95 * len(validation)


def test_heads_read_what_the_look_shows() -> None:
    look = trained.look_at("it", trained.IT.format("tired"))
    heads = trained.read_heads(look, "it")
    assert trained.find_tag(look, "it") == "animal"
    assert heads.keys() == {"1.1", "1.2", "2.1", "2.2"}
    strongest = min(heads.values(), key=lambda head: head.delta)
    assert strongest.word == "animal"
    assert strongest.weight > 0.9
    wide = trained.read_heads(trained.look_at("it", trained.IT.format("wide")), "it")
    assert {head.word for head in wide.values()} != {head.word for head in heads.values()}


def test_both_heads_of_bank_read_the_word_that_decides() -> None:
    for cue, sense in (("fish", "river"), ("loan", "money")):
        look = trained.look_at("bank", trained.BANK.format(cue))
        assert trained.find_tag(look, "bank") == sense
        assert {head.word for head in trained.read_heads(look, "bank").values()} == {cue}


@pytest.mark.parametrize("name", trained.PAGES)
def test_every_page_is_a_comparison(name: str) -> None:
    document = trained.PAGES[name]()
    check(document, Document)
    assert document["against"]["output"] != document["output"]


def test_the_noun_of_it_needs_more_than_near_tokens() -> None:
    near, middle, far = (trained.read_within(reach) for reach in (1, 2, None))
    assert near[0] < 0.1 < 0.4 < middle[0] < 0.6, "the place is 2 tokens away, the animal 7"
    assert near[1] > 0.9, "the tags of the other words are local"
    assert far == (1, 1)
    assert len([line for line in trained.show_context() if line.startswith("  head")]) == 4


def test_a_translator_turns_a_majority_into_a_rule() -> None:
    rows = [line.split() for line in trained.show_pronouns() if line.startswith("   ")]
    assert [row[1] for row in rows] == ["she"] * 4 + ["he"] * 4
    assert all(0.1 < float(row[0][:-1]) / 100 < 0.9 for row in rows), "both pronouns occur in training"


def test_a_learned_look_up_answers_without_its_key() -> None:
    assert trained.tag_last([trained.LOOKUP.format(number) for number in (100, 103, 104)]) == ["a", "d", "e"]
    assert trained.tag_last([trained.LOOKUP.format(105)])[0] in set("abcdef")


def test_copies_end_with_the_lengths_of_the_training_data() -> None:
    short, long = "a b a b a b", "a b c d e f g h i j k l m"
    assert trained.translate("copy", [short]) == [short]
    assert trained.translate("copy", [long]) != [long]
    weights = trained.weigh(trained.look_at("copy", trained.SYMBOLS), "decoder.0.cross")
    assert (weights.mean(dim=0).argmax(dim=-1) == torch.arange(6)).all(), "each step reads its symbol"
