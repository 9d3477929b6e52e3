"""Text that goes on where a prompt stops, with a decoder-only model."""

from collections.abc import Iterator

import torch

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.decode.sample import Filters, sampled
from regard.models.decoder_only import DecoderOnly
from regard.pipeline.limits import learned_positions
from regard.pipeline.quiet import quiet
from regard.pipeline.written import never_written
from regard.store.model_folder import check_sizes
from regard.text.vocabularies import Vocabularies


class Writer:
    """writer = regard.load("my-model"); "".join(writer.write("Once upon a time"))."""

    def __init__(self, model: DecoderOnly, vocabularies: Vocabularies, settings: settings_of.DecoderOnly) -> None:
        if settings.task != "continue":
            raise RegardError(
                f"This model's task is '{settings.task}', not 'continue'.", fix="There is no pipeline for it yet."
            )
        check_sizes(settings, vocabularies, where="Writer")
        self.model = model
        self.vocabularies = vocabularies
        self.settings = settings

    def write(
        self,
        prompt: str = "",
        tokens: int = 200,
        temperature: float = 0.8,
        top_k: int | None = None,
        top_p: float | None = 0.95,
        seed: int | None = None,
    ) -> Iterator[str]:
        """What follows the prompt, piece by piece as it is written; the prompt itself is not repeated.

        It ends where the model ends it, or after `tokens` tokens. `temperature` 0 always takes the likeliest word; the
        order of temperature, `top_k` and `top_p` is told in `regard.decode.sample`. The same `seed` writes the same
        text; without one it is another every time. Tokens that are no text (pad, begin, mask, classify, separate, tags
        of languages) are never written.

        The model reads [begin] and the prompt, as it was trained. It may be in training: it is used without dropout
        and left as it was when the text ends.
        """
        filters = Filters(temperature, top_k, top_p)
        ids = [self.vocabularies.source.specials.begin, *self.vocabularies.source.encode_ids([prompt])[0]]
        self._check_length(len(ids), tokens)
        generator = torch.Generator(next(self.model.parameters()).device)
        if seed is None:
            generator.seed()
        else:
            generator.manual_seed(seed)
        return self._written(ids, tokens, filters, generator)  # faults above are told now, not at the first piece

    @torch.inference_mode()
    def _written(self, ids: list[int], tokens: int, filters: Filters, generator: torch.Generator) -> Iterator[str]:
        tokenizer, device = self.vocabularies.source, generator.device
        stream = tokenizer.stream()
        for token in ids:
            stream.push(token)  # whether a space belongs before the first word depends on what stands there
        with quiet(self.model):
            steps = sampled(
                self.model.step,
                self.model.start(len(ids) + tokens),
                torch.tensor([ids], device=device),
                end=tokenizer.specials.end,
                longest=[tokens],
                generator=generator,
                filters=filters,
                never=never_written(tokenizer, device),
            )
            for (written,) in steps:
                if written is not None and (piece := stream.push(written[0])):
                    yield piece
        if rest := stream.finish():
            yield rest

    def _check_length(self, read: int, tokens: int) -> None:
        if tokens < 1:
            raise RegardError(f"{tokens} tokens cannot be written.", fix="Ask for 1 or more.")
        limit = learned_positions(self.settings.decoder)
        if limit is None or read + tokens - 1 <= limit:
            return
        room = limit - read + 1
        raise RegardError(
            f"{read} tokens are read and {tokens} asked for, but the model has learned {limit} positions.",
            fix=f"Ask for at most {room} tokens." if room > 0 else "Shorten the prompt.",
        )
