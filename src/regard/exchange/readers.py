"""Tables of names for the encoder-only models of Hugging Face: BERT, one architecture for each head."""

from typing import Literal

from torch import Tensor

from regard.exchange.names import BOTH, SOURCE, WEIGHT, Constants, Rules, Sinusoid, position_tables, rules, under
from regard.exchange.rules import Constant, Rule, Table, Tensors

Head = Literal["masked_words", "classes", "tags", "vectors"]  # the kinds of heads in a configuration

BERT_LAYER = {
    **under("attention", "attention.self", {name: name for name in ("query", "key", "value")}),
    "attention.output": "attention.output.dense",
    "around_attention.norm": "attention.output.LayerNorm",
    "feedforward.up": "intermediate.dense",
    "feedforward.down": "output.dense",
    "around_feedforward.norm": "output.LayerNorm",
}
BERT_STACK = {
    "encoder.input_norm": "embeddings.LayerNorm",
    **under("encoder.layers.{i}", "encoder.layer.{i}", BERT_LAYER),
}
BERT_ARCHITECTURES: dict[Head, str] = {
    "masked_words": "BertForMaskedLM",
    "classes": "BertForSequenceClassification",
    "tags": "BertForTokenClassification",
    "vectors": "BertModel",
}
BERT_HEADS: dict[Head, dict[str, str]] = {
    "masked_words": {
        "head.dense": "cls.predictions.transform.dense",
        "head.norm": "cls.predictions.transform.LayerNorm",
    },
    "classes": {"head.dense": "bert.pooler.dense", "head.classes": "classifier"},
    "tags": {"head.tags": "classifier"},
    "vectors": {},
}


def bert(head: Head, *, types: bool = True, sinusoid: Sinusoid | None = None) -> Table:
    """The BERT with this head; `masked_words` must be tied, and `vectors` is made with `add_pooling_layer=False`.

    Without `types` it has `type_vocab_size = 1`; `sinusoid` says that our positions are one, and not learned.
    """
    inside = "" if head == "vectors" else "bert."
    learned, computed = position_tables(
        {"encoder.position.table": f"{inside}embeddings.position_embeddings"}, sinusoid, SOURCE
    )
    typed, untyped = _types(f"{inside}embeddings.token_type_embeddings", types)
    stack = {our: f"{inside}{their}" for our, their in BERT_STACK.items()}
    return Table(
        BERT_ARCHITECTURES[head],
        (
            *_words(head, f"{inside}embeddings.word_embeddings.weight"),
            *typed,
            *learned,
            *rules(stack | BERT_HEADS[head], BOTH),
        ),
        (
            *untyped,
            *computed,
            Constant(f"{inside}embeddings.position_ids", "0, 1, 2, ..., stored by older files."),
            *_next_sentence(head, inside),
        ),
    )


def _words(head: Head, theirs: str) -> Rules:
    """The embeddings, which are the output matrix too where words are the answer."""
    if head != "masked_words":
        return (Rule(SOURCE, theirs),)
    return (
        Rule(
            SOURCE,
            theirs,
            our_copies=("head.words.words.weight",),
            their_copies=("cls.predictions.decoder.weight",),
        ),
        Rule("head.words.bias", "cls.predictions.bias", their_copies=("cls.predictions.decoder.bias",)),
    )


def _types(theirs: str, types: bool) -> tuple[Rules, Constants]:
    """The table of token types, or one type that adds nothing."""
    if types:
        return rules({"source.types": theirs}, WEIGHT), ()

    def zeros(ours: Tensors) -> Tensor:
        return ours[SOURCE].new_zeros(1, ours[SOURCE].size(1))

    return (), (Constant(f"{theirs}.weight", "all zeros, for our model has no token types.", zeros),)


def _next_sentence(head: Head, inside: str) -> Constants:
    """What pre-training leaves in files, except where a classifier goes on with it."""
    modules = (*(() if head == "classes" else (f"{inside}pooler.dense",)), "cls.seq_relationship")
    reason = "of the next-sentence task, which this head does not use."
    return tuple(Constant(f"{module}.{field}", reason) for module in modules for field in BOTH)
