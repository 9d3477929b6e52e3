"""Translation task. Training methods import metrics and rows lazily, because a translator does not need them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from regard.base.errors import RegardError
from regard.tasks.film_probe import MAX_TOKENS, FilmProbe, greedy
from regard.tasks.search import Beam
from regard.tasks.task import AnyAugmentation, Task, make_text_pair_batch, require_tokenizers
from regard.tasks.translation.translator import Translator

if TYPE_CHECKING:
    from regard.config.model import AnyModelConfig
    from regard.config.run import RunConfig
    from regard.data.batches.batch import Batch
    from regard.data.batches.rows import RowMaker
    from regard.data.shards.shard import Shards
    from regard.models.build import AnyModel
    from regard.store.examples import ValidationExample
    from regard.tasks.validation import Scores, ValidationContext
    from regard.text.tokenizer_pair import TokenizerPair


class TranslationTask(Task):
    """Translate with an encoder-decoder, trained with teacher forcing."""

    pipeline_class = Translator
    text_sides = ("source", "target")
    has_length_ratio = True

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Prepend the target language tag to every source if the tokenizer has language tags."""
        from regard.tasks.translation.rows import TranslationRows

        del run, augmentation
        source, target = require_tokenizers(tokenizers).source, require_tokenizers(tokenizers).target
        languages: Sequence[tuple[str, ...]] = shards.languages if source.specials.languages else ()
        if not all(languages):
            raise RegardError(
                "The tokenizer has language tags, but a corpus source does not declare its languages.",
                hint='Give every source its languages = ["en", "de"], or leave tokenizer.specials.languages empty.',
            )
        tags = tuple(source.specials.language_id(pair[-1]) for pair in languages)
        return shards, TranslationRows(source.specials, target.specials, tags)

    def validate(self, context: ValidationContext) -> dict[str, float]:
        """Compute the likelihood of the references, including bits per byte."""
        from regard.tasks.validation import score_text_loss

        return score_text_loss(context)

    def generates(self, context: ValidationContext) -> bool:
        """Whether scores or samples are requested."""
        return bool(context.settings.sentences or context.settings.samples)

    def score_outputs(self, context: ValidationContext, model: AnyModel) -> Scores:
        """Translate the first validation pairs greedily, distributed over all ranks, and compute BLEU and chrF."""
        from regard.data.example import SampleOutput
        from regard.measure.bleu_chrf import bleu, chrf
        from regard.measure.sentence_chrf import sentence_chrf
        from regard.tasks.validation import Scores

        pairs, ranks, settings = self._choose_pairs(context), context.ranks, context.settings
        if not pairs:
            return Scores()
        translator = Translator(model, context.tokenizers, context.model_settings)  # type: ignore[arg-type]
        has_language_tags = bool(context.tokenizers.source.specials.languages)
        share = pairs[ranks.rank :: ranks.world_size]
        translations = translator.translate(
            [pair.source for pair in share],
            Beam(1),
            target_language=[pair.languages[-1] for pair in share] if has_language_tags else None,
        )
        texts = ranks.all_gather([translation.text for translation in translations], patient=True)  # by rank
        outputs = [texts[index % ranks.world_size][index // ranks.world_size] for index in range(len(pairs))]
        references = [pair.target or "" for pair in pairs]
        samples = tuple(
            SampleOutput(pair.source, output, pair.target or "")
            for pair, output in zip(pairs[: settings.samples], outputs, strict=False)
        )
        if not settings.sentences:
            return Scores({}, samples)
        scores = {"bleu": bleu(outputs, references), "chrf": chrf(outputs, references)}
        if len(pairs) < len(context.loader.shards):
            chrfs = [sentence_chrf(output, reference) for output, reference in zip(outputs, references, strict=True)]
            context.errors["chrf"] = float(np.std(chrfs)) / math.sqrt(len(chrfs))
        values = {name: score.value for name, score in scores.items()} | context.apply_metrics(outputs, references)
        return Scores(values, samples, signatures={name: score.signature for name, score in scores.items()})

    def _choose_pairs(self, context: ValidationContext) -> list[ValidationExample]:
        """Return the pairs to translate: pairs that fit into a training batch, chosen once."""
        tokenizers, loader = context.tokenizers, context.loader

        def fits_batch(pair: ValidationExample) -> bool:
            if pair.target is None:
                return False
            sides = ((tokenizers.source, pair.source), (tokenizers.target, pair.target))
            lengths = np.array([[len(tokenizer.encode_ids([text])[0])] for tokenizer, text in sides])
            return int(loader.rows.row_lengths(lengths).max()) <= loader.order.settings.length_limit

        if "pairs" not in context.cache:
            count = max(context.settings.sentences, context.settings.samples)
            context.cache["pairs"] = list(islice(filter(fits_batch, context.examples), count))
        return context.cache["pairs"]

    def film_probes(
        self,
        examples: Sequence[ValidationExample],
        tokenizers: TokenizerPair | None,
        settings: AnyModelConfig,  # noqa: ARG002
    ) -> Iterator[FilmProbe]:
        """Yield pairs of short sentences."""
        source, target = require_tokenizers(tokenizers).source, require_tokenizers(tokenizers).target
        for pair in examples:
            ids, labels = source.encode_ids([pair.source])[0], target.encode_ids([pair.target or ""])[0]
            if ids and labels and max(len(ids), len(labels)) < MAX_TOKENS:
                labels = [*labels, target.specials.eos]
                language = pair.languages[-1] if source.specials.languages else None
                yield FilmProbe(pair.source, pair.target or "", labels, greedy(labels, language))

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random tokens on both sides."""
        return make_text_pair_batch(run, rows, length)
