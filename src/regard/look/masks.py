"""The masks that a model used, and a test that no later token leaks into an earlier row."""

from regard.look.attention import GROUPS, attention_name
from regard.look.document import LeakTest, MaskTerm, MaskView
from regard.look.record import LookRecord
from regard.nn.masks import Mask
from regard.tasks.replay import ReplayInput

CHECKED_ROWS = 32  # rows on each side of the cut whose distributions are compared


def make_masks(record: LookRecord, leak: LeakTest | None) -> list[MaskView]:
    """Return the mask of each group of attentions; the leak test belongs to a decoder's self-attention."""
    views = []
    for group in GROUPS:
        attention = record.attention.get(attention_name(group, 0))
        if attention is not None:
            views.append(
                MaskView(
                    group=group,
                    rows=attention.query.size(2),
                    columns=attention.key.size(2),
                    terms=_describe(attention.mask.terms),
                    leak=leak if group == "decoder.self" else None,
                )
            )
    return views


def _describe(mask: Mask | None) -> list[MaskTerm]:
    """Return the terms of the first row's mask."""
    terms: list[MaskTerm] = []
    if mask is None:
        return terms
    if mask.causal:
        terms.append(MaskTerm(kind="causal"))
    if mask.window is not None:
        terms.append(MaskTerm(kind="window", width=mask.window))
    if mask.valid is not None:
        terms.append(MaskTerm(kind="padding", valid=mask.valid[0].tolist()))
    terms += [MaskTerm(kind="documents", documents=documents[0].tolist()) for documents in mask.documents]
    return terms


def check_leak(passage: ReplayInput) -> LeakTest | None:
    """Replace the later tokens of a decoder's input, and compare its predictions before and after the change.

    Every token after the middle is replaced by the previous token in the vocabulary. None if the text is too short.
    """
    tokens = list(passage.target)
    prefix = (len(tokens) + 1) // 2
    if len(tokens) - prefix < 1:
        return None
    replaced = tokens[:prefix] + [token - 1 if token else 1 for token in tokens[prefix:]]
    early = list(range(max(0, prefix - CHECKED_ROWS), prefix))
    late = list(range(prefix, min(len(tokens), prefix + CHECKED_ROWS)))
    before, after = (passage.distributions(ids, early + late) for ids in (tokens, replaced))
    changes = (before - after).abs().amax(dim=1)  # (early + late)
    return LeakTest(
        prefix=prefix,
        replaced=len(tokens) - prefix,
        change=float(changes[: len(early)].max()),
        later_change=float(changes[len(early) :].max()),
    )
