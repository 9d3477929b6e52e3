"""Log-probabilities of several continuations per prompt; shared prefixes are computed only once.

The model reads the common prefix of all prompts once (e.g. the few-shot examples), then the rest of each prompt, then
the continuations, each with a copy of its prompt's KV cache.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from regard.decode.protocol import nan_error
from regard.models.cpu_decoder import STEP_BYPASSES, eval_mode
from regard.models.decoder_only import DecoderOnly
from regard.models.inputs import pad
from regard.nn.kv_cache import DecodingState
from regard.tasks.encoding import batch_by_length

Ids = Sequence[int]


def score_continuations(
    model: DecoderOnly,
    prompts: Sequence[Ids],
    continuations: Sequence[Sequence[Ids]],
    *,
    pad_id: int,
    batch_tokens: int,
    report: Callable[[int], None] | None = None,
) -> list[list[list[float]]]:
    """Return the log-probability of each token of each continuation of each prompt.

    Args:
        model: The language model.
        prompts: Token ids of the prompts, at least one token each.
        continuations: The continuations of each prompt: the same number for every prompt, of at least one token each.
        pad_id: The padding token id.
        batch_tokens: Maximum number of tokens in a batch, padding included.
        report: Called after each batch with the number of scored prompts.
    """
    scores: list[list[list[float]]] = [[] for _ in prompts]
    if not prompts:
        return scores
    max_lengths = [max(map(len, choices)) for choices in continuations]
    lengths = [len(prompt) + length for prompt, length in zip(prompts, max_lengths, strict=True)]
    count, shared, device = len(continuations[0]), _count_shared(prompts), next(model.parameters()).device
    with eval_mode(model, bypasses=STEP_BYPASSES), torch.inference_mode():
        state = model.start(max(map(len, prompts)) + max(max_lengths))
        if shared:
            _read(model, state, [list(prompts[0][:shared])], pad_id, device)
        for batch in batch_by_length(lengths, batch_tokens, count):
            if shared:
                state.crop(shared)
                state.reorder(torch.zeros(len(batch), dtype=torch.long))
            else:
                state = model.start(state.kv_cache.capacity)
            rests = [list(prompts[index][shared:]) for index in batch]
            first = _read(model, state, rests, pad_id, device)  # (B, T, D)
            state.crop([len(prompts[index]) for index in batch])
            choices = [list(choice) for index in batch for choice in continuations[index]]
            state.reorder(torch.arange(len(batch)).repeat_interleave(count))
            tails = _read(model, state, [choice[:-1] for choice in choices], pad_id, device)  # (B C, S, D)
            for row, choice in enumerate(choices):
                number = row // count
                hidden_states = first[number, len(rests[number]) - 1][None]  # (1, D)
                if len(choice) > 1:
                    hidden_states = torch.cat((hidden_states, tails[row, : len(choice) - 1]))  # (S, D)
                logprobs = model.head(hidden_states[None])[0].float().log_softmax(dim=1)  # (S, V)
                labels = torch.tensor(choice, device=device)
                scores[batch[number]].append(logprobs.gather(1, labels[:, None])[:, 0].tolist())
            if report is not None:
                report(len(batch))
    if any(logprob != logprob for choices in scores for choice in choices for logprob in choice):
        raise nan_error()
    return scores


def _count_shared(prompts: Sequence[Ids]) -> int:
    """Return the length of the common prefix of all prompts, excluding each prompt's last token."""
    if len(prompts) == 1:
        return 0
    first, last = (
        min(map(tuple, prompts)),
        max(map(tuple, prompts)),
    )  # in sorted order, so a prefix common to these two is common to all
    limit = min(map(len, prompts)) - 1
    return next((n for n in range(limit) if first[n] != last[n]), limit)


def _read(model: DecoderOnly, state: DecodingState, rows: list[list[int]], pad_id: int, device: torch.device) -> Tensor:
    """Append rows of tokens to the decoder state; return the hidden states (B, T, D)."""
    if not any(rows):
        return torch.empty(len(rows), 0, 0, device=device)
    tokens, _ = pad(rows, pad_id, device)  # (B, T)
    return model.decoder(model.tokens(tokens)[0], model.mask, kv_cache=state.kv_cache)
