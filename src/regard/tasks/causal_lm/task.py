"""Causal language modeling task."""

from collections.abc import Iterator, Sequence

from regard.config.model import AnyModelConfig
from regard.config.run import RunConfig
from regard.data.batches.batch import Batch
from regard.data.batches.rows import RowMaker
from regard.data.example import SampleOutput
from regard.data.shards.shard import Shards
from regard.models.build import AnyModel
from regard.store.examples import ValidationExample
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.causal_lm.rows import CausalLMRows, PromptResponseRows
from regard.tasks.film_probe import MAX_TOKENS, FilmProbe, greedy
from regard.tasks.task import AnyAugmentation, Task, make_synthetic_batch, random_tokens, require_tokenizers
from regard.tasks.validation import Scores, ValidationContext, score_text_loss
from regard.text.special_marks import remove_marks
from regard.text.tokenizer_pair import TokenizerPair

PROMPT_CHARACTERS = 40  # characters of the prompt of a sample continuation
CONTINUATION_TOKENS = 60  # tokens of a sample continuation
FILM_TOKENS = 20  # tokens of a continuation in a training film
FILM_PLACES, FILM_DISTANCE = 5, 400  # a text has prompts at this many places, this many characters apart


class CausalLMTask(Task):
    """Predict the next token of running text, or the response to a prompt."""

    pipeline_class = TextGenerator
    text_sides = ("source", "target")

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Pack documents into full rows, or join each prompt and its response."""
        del augmentation
        specials = require_tokenizers(tokenizers).source.specials
        starts_with_bos: bool = run.model.starts_with_bos  # type: ignore[union-attr]
        rows = PromptResponseRows if shards.streams == ("source", "target") else CausalLMRows
        return shards, rows(specials, starts_with_bos)

    def validate(self, context: ValidationContext) -> dict[str, float]:
        """Compute the likelihood of the text, including bits per byte."""
        return score_text_loss(context)

    def generates(self, context: ValidationContext) -> bool:
        """Whether samples are requested."""
        return bool(context.settings.sentences or context.settings.samples)

    def score_outputs(self, context: ValidationContext, model: AnyModel) -> Scores:
        """Continue the first validation texts or prompts as samples."""
        if context.ranks.rank:
            return Scores()
        generator = TextGenerator(model, context.tokenizers, context.model_settings)  # type: ignore[arg-type]
        settings, samples = generator.settings, []
        limit = min(filter(None, (settings.decoder.max_positions, settings.context_length)), default=None)
        for example in context.examples[: context.settings.samples]:
            prompt, rest = example.source[:PROMPT_CHARACTERS], example.source[PROMPT_CHARACTERS:]
            if example.target is not None:  # a prompt and its response
                prompt, rest = example.source, example.target
            prompt_length = 1 + len(context.tokenizers.source.encode_ids([prompt])[0])
            tokens = CONTINUATION_TOKENS if limit is None else min(CONTINUATION_TOKENS, limit - prompt_length)
            text = "".join(generator.stream(prompt, max_new_tokens=tokens, seed=context.seed)) if tokens > 0 else ""
            samples.append(SampleOutput(remove_marks(prompt), text, rest[: len(text)]))
        return Scores({}, tuple(samples))

    def film_probes(
        self, examples: Sequence[ValidationExample], tokenizers: TokenizerPair | None, settings: AnyModelConfig
    ) -> Iterator[FilmProbe]:
        """Yield prompts with their responses, or the first words of texts with the words that follow."""
        tokenizer = require_tokenizers(tokenizers).source
        limit: int | None = settings.decoder.max_positions  # type: ignore[union-attr]
        for prompt, rest, is_response in _cut_prompts(examples):
            ids = tokenizer.encode_ids([prompt])[0]
            labels = tokenizer.encode_ids([rest])[0][:FILM_TOKENS]
            reference = tokenizer.decode(labels, ids)
            labels += [tokenizer.specials.eos] * is_response
            options = greedy(labels)
            read = 1 + len(ids) + (options.max_new_tokens or 0)
            if ids and labels and len(ids) < MAX_TOKENS and (limit is None or read <= limit):
                yield FilmProbe(prompt, reference, labels, options)

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random tokens."""
        tokens = random_tokens(run, rows, length)
        return make_synthetic_batch(tokens, target=tokens)


def _cut_prompts(examples: Sequence[ValidationExample]) -> Iterator[tuple[str, str, bool]]:
    """Yield prompts, what follows them, and whether it is a whole response; texts are cut between words."""
    for start in range(0, FILM_PLACES * FILM_DISTANCE, FILM_DISTANCE):
        for example in examples:
            if example.target is not None:
                if start == 0:
                    yield example.source, example.target, True
                continue
            text = example.source[start : start + FILM_DISTANCE]
            text = text if start == 0 else text.partition(" ")[2]
            cut = text.rfind(" ", 1, PROMPT_CHARACTERS)
            cut = PROMPT_CHARACTERS if cut < 0 else cut
            yield text[:cut], text[cut:], False
