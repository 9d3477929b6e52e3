from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.base.labels import IGNORE_INDEX
from regard.config.tokenizers import ByteBpeConfig
from regard.data.batches.arrays import StoredSamples
from regard.data.batches.cutting import BatchShapes
from regard.data.batches.rows import RowMaker
from regard.tasks.causal_lm.rows import CausalLMRows
from regard.tasks.masked_lm import MaskedLMRows
from regard.tasks.span_corruption import SpanCorruptionRows
from regard.tasks.tagging import TaggingRows
from regard.tasks.text_classification import ClassificationRows
from regard.tasks.translation.rows import TranslationRows
from regard.tasks.word_vectors import CbowRows, SkipGramRows
from regard.text.learn import learn
from tests.data.batches.factories import make_samples, to_list
from tests.data.factories import SPECIALS as S

TEXT_IDS = np.arange(80)


def make_texts(count: int, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 80, int(size)).tolist() for size in rng.integers(0, 60, count)]


def test_translate_shifts_the_target() -> None:
    rows = TranslationRows(S, S).make_arrays(make_samples([([1, 2, 3], [4]), ([5], [6, 7])]))
    assert to_list(rows.source) == [[1, 2, 3, S.eos], [5, S.eos, S.pad, S.pad]]
    assert rows.source_valid is not None
    assert rows.source_valid.tolist() == [[True] * 4, [True, True, False, False]]
    assert to_list(rows.target) == [[S.bos, 4, S.pad], [S.bos, 6, 7]]
    assert to_list(rows.labels) == [[4, S.eos, IGNORE_INDEX], [6, 7, S.eos]]


def test_translate_adds_the_target_language_tag() -> None:
    rows = TranslationRows(S, S, language_tags=(70, 71)).make_arrays(make_samples([([1], [4]), ([5, 6], [7])]))
    assert to_list(rows.source) == [[70, 1, S.eos, S.pad], [71, 5, 6, S.eos]]
    assert to_list(rows.labels) == [[4, S.eos], [7, S.eos]]


def test_translate_with_two_vocabularies_and_empty_texts() -> None:
    target_specials = replace(S, pad=190, bos=191, eos=192)
    rows = TranslationRows(S, target_specials).make_arrays(make_samples([([], [4, 5]), ([1], [])]))
    assert to_list(rows.source) == [[S.eos, S.pad], [1, S.eos]]
    assert to_list(rows.target) == [[191, 4, 5], [191, 190, 190]]
    assert to_list(rows.labels) == [[4, 5, 192], [192, IGNORE_INDEX, IGNORE_INDEX]]


def make_packed(pieces: list[tuple[list[int], int, int, int]]) -> StoredSamples:
    """Make segments (document, start, length, row) with the tokens that the loader would read."""
    stored = [document[max(start - 1, 0) : start + length] for document, start, length, _ in pieces]
    zeros = np.zeros(len(pieces), np.int64)
    return StoredSamples(
        tokens=np.array([token for part in stored for token in part], np.uint16),
        lengths=np.array([[length for _, _, length, _ in pieces]]),
        samples=np.arange(len(pieces)),
        draws=zeros,
        languages=zeros,
        labels=zeros,
        starts=np.array([start for _, start, _, _ in pieces]),
        document_lengths=np.array([len(document) for document, _, _, _ in pieces]),
        rows=np.array([row for _, _, _, row in pieces]),
    )


def test_language_modelling_packs_separate_documents() -> None:
    first, second = [1, 2], [11, 12, 13, 14]
    rows = CausalLMRows(S).make_arrays(make_packed([(first, 0, 3, 0), (second, 0, 2, 0), (second, 2, 3, 1)]))
    assert to_list(rows.target) == [[S.bos, 1, 2, S.bos, 11], [12, 13, 14, S.pad, S.pad]]
    assert to_list(rows.labels) == [[1, 2, S.eos, 11, 12], [13, 14, S.eos, IGNORE_INDEX, IGNORE_INDEX]]
    assert to_list(rows.documents) == [[0, 0, 0, 1, 1], [2, 2, 2, -1, -1]]
    assert to_list(rows.positions) == [[0, 1, 2, 0, 1], [0, 1, 2, 0, 0]]
    rows = CausalLMRows(S, starts_with_bos=False).make_arrays(
        make_packed([(first, 0, 3, 0), (second, 0, 2, 0), (second, 2, 3, 1)])
    )
    assert to_list(rows.target) == [[1, 2, 11], [12, 13, 14]]
    assert to_list(rows.labels) == [[2, S.eos, 12], [13, 14, S.eos]]
    assert to_list(rows.positions) == [[0, 1, 0], [0, 1, 2]]


def test_language_modelling_with_an_empty_document_and_eos_alone() -> None:
    rows = CausalLMRows(S).make_arrays(make_packed([([], 0, 1, 0), ([7, 8], 2, 1, 0)]))
    assert to_list(rows.target) == [[S.bos, 8]]
    assert to_list(rows.labels) == [[S.eos, S.eos]]


def test_masked_lm_masks_and_labels() -> None:
    token_lists = make_texts(400)
    task = MaskedLMRows(S, seed=1, text_ids=TEXT_IDS)
    rows = task.make_arrays(make_samples([(text,) for text in token_lists]))
    assert rows.source is not None
    n_masked = total = 0
    for number, text in enumerate(token_lists):
        inner, labels = rows.source[number, 1 : len(text) + 1], rows.labels[number, 1 : len(text) + 1]
        assert rows.source[number, 0] == S.cls
        assert rows.source[number, len(text) + 1] == S.sep
        assert np.where(inner == S.mask, labels, inner).tolist() == text  # hidden or there, nothing else
        assert ((labels != IGNORE_INDEX) == (inner == S.mask)).all()
        assert not text or (inner == S.mask).any()
        n_masked, total = n_masked + int((inner == S.mask).sum()), total + len(text)
    assert abs(n_masked / total - 0.15) < 0.02
    assert (rows.labels != IGNORE_INDEX).sum() == n_masked


def test_masked_lm_as_bert() -> None:
    token_lists = make_texts(2000)
    rows = MaskedLMRows(S, seed=1, text_ids=TEXT_IDS, masking="bert").make_arrays(
        make_samples([(text,) for text in token_lists])
    )
    assert rows.source is not None
    is_masked = rows.labels != IGNORE_INDEX
    inputs, labels = rows.source[is_masked], rows.labels[is_masked]
    masked, same = float((inputs == S.mask).mean()), float((inputs == labels).mean())
    assert abs(masked - 0.8) < 0.02
    assert abs(same - 0.1 - 0.1 / 80) < 0.02
    assert inputs[inputs != S.mask].max() < 80  # a random token is text, never a special one
    flat = np.concatenate([rows.source[n, 1 : len(text) + 1] for n, text in enumerate(token_lists)])
    kept = np.concatenate([~is_masked[n, 1 : len(text) + 1] for n, text in enumerate(token_lists)])
    assert (flat[kept] == np.concatenate([np.array(text, np.int64) for text in token_lists])[kept]).all()


def test_masked_lm_masks_whole_words() -> None:
    opens = np.arange(100) % 3 == 0  # every third id opens a word
    closes = np.arange(100) % 7 == 6  # and after these one begins
    token_lists = make_texts(300)
    rows = MaskedLMRows(S, seed=1, text_ids=TEXT_IDS, boundaries=(opens, closes)).make_arrays(
        make_samples([(text,) for text in token_lists])
    )
    n_long = 0
    for number, text in enumerate(token_lists):
        is_masked = (rows.labels[number, 1 : len(text) + 1] != IGNORE_INDEX).tolist()
        words: list[list[bool]] = []
        for place, token in enumerate(text):
            if place == 0 or opens[token] or closes[text[place - 1]]:
                words.append([])
            words[-1].append(is_masked[place])
        assert all(len(set(word)) == 1 for word in words)
        n_long += sum(len(word) > 1 and word[0] for word in words)
    assert n_long > 100
    assert (
        abs(float((rows.labels != IGNORE_INDEX).sum()) / sum(map(len, token_lists)) - 0.15) < 0.04
    )  # at least one word of each


NOISY: list[RowMaker] = [
    MaskedLMRows(S, seed=1, text_ids=TEXT_IDS, masking="bert"),
    MaskedLMRows(S, seed=1, text_ids=TEXT_IDS, boundaries=(np.arange(100) % 3 == 0, np.zeros(100, np.bool_))),
    SpanCorruptionRows(S, tuple(range(100, 130)), seed=1),
    SkipGramRows(S, seed=1, window=5),
]


@pytest.mark.parametrize("task", NOISY, ids=["bert", "words", "span_corruption", "skip_gram"])
def test_noise_depends_on_seed_epoch_and_sample_only(task: RowMaker) -> None:
    token_lists = make_texts(50, seed=3)
    whole = task.make_arrays(make_samples([(text,) for text in token_lists], epoch=2))
    order = np.random.default_rng(0).permutation(50).tolist()
    for first in range(0, 50, 7):
        part = order[first : first + 7]
        rows = task.make_arrays(make_samples([(token_lists[number],) for number in part], numbers=part, epoch=2))
        for row, number in enumerate(part):
            for rows_of_part, rows_of_all in (
                (rows.labels, whole.labels),
                (rows.source, whole.source),
                (rows.target, whole.target),
            ):
                if rows_of_part is not None and rows_of_all is not None:
                    wide = min(rows_of_part.shape[1], rows_of_all.shape[1])
                    assert rows_of_part[row, :wide].tolist() == rows_of_all[number, :wide].tolist()
    samples: list[tuple[list[int], ...]] = [(text,) for text in token_lists]
    for changed_samples in (
        make_samples(samples, epoch=3),
        make_samples(samples, numbers=list(range(1, 51)), epoch=2),
    ):
        changed = task.make_arrays(changed_samples)
        assert changed.labels.shape != whole.labels.shape or (changed.labels != whole.labels).any()


def test_span_corruption_can_be_undone() -> None:
    sentinels = tuple(range(100, 130))
    task = SpanCorruptionRows(S, sentinels, seed=5)
    token_lists = make_texts(300)
    rows = task.make_arrays(make_samples([(text,) for text in token_lists]))
    assert rows.source is not None
    assert rows.target is not None
    assert rows.source_valid is not None
    span_lengths = Counter[int]()
    for number, text in enumerate(token_lists):
        source = rows.source[number][rows.source_valid[number]].tolist()
        target = rows.labels[number][rows.labels[number] != IGNORE_INDEX].tolist()
        assert source.pop() == S.eos
        assert target.pop() == S.eos
        assert rows.target[number, : len(target) + 1].tolist() == [S.bos, *target]
        spans_by_sentinel: dict[int, list[int]] = {}
        for token in target:
            spans_by_sentinel.setdefault(token, []) if token >= 100 else spans_by_sentinel[
                max(spans_by_sentinel)
            ].append(token)
        assert list(spans_by_sentinel) == list(sentinels[: len(spans_by_sentinel)])  # each mark once, in order
        assert [t for token in source for t in (spans_by_sentinel[token] if token >= 100 else [token])] == text
        n_masked = sum(map(len, spans_by_sentinel.values()))
        assert n_masked == (min(max(1, round(len(text) * 0.15)), len(text) - 1) if len(text) > 1 else 0)
        assert (len(source) + 1, len(target) + 1) == tuple(task.row_lengths(np.array([[len(text)]]))[:, 0].tolist())
        span_lengths.update(len(span) for span in spans_by_sentinel.values())
    assert abs(sum(size * count for size, count in span_lengths.items()) / span_lengths.total() - 3) < 0.5
    assert len(span_lengths) > 3


def test_span_corruption_needs_enough_sentinels() -> None:
    with pytest.raises(RegardError, match="needs 3 sentinel tokens; the vocabulary has 2"):
        SpanCorruptionRows(S, (100, 101), seed=1).make_arrays(make_samples([(list(range(60)),)]))


def test_classify_texts_and_pairs() -> None:
    rows = ClassificationRows(S).make_arrays(make_samples([([1, 2],), ([3],)]))
    assert to_list(rows.source) == [[S.cls, 1, 2, S.sep], [S.cls, 3, S.sep, S.pad]]
    assert rows.labels.tolist() == [IGNORE_INDEX, 0]
    rows = ClassificationRows(S, pairs=True).make_arrays(make_samples([([1, 2], [5]), ([], [6])]))
    assert to_list(rows.source) == [
        [S.cls, 1, 2, S.sep, 5, S.sep],
        [S.cls, S.sep, 6, S.sep, S.pad, S.pad],
    ]
    assert rows.source_valid is not None
    assert rows.source_valid.sum(axis=1).tolist() == [6, 4]


def test_long_texts_are_truncated() -> None:
    task = ClassificationRows(S, max_length=5)
    samples = make_samples([([1, 2, 3, 4],), ([5],), ([6, 7, 8],)])
    assert task.row_lengths(samples.lengths).tolist() == [[5, 3, 5]]
    assert task.untruncated_lengths(samples.lengths).tolist() == [[6, 3, 5]]
    assert to_list(task.make_arrays(samples).source) == [
        [S.cls, 1, 2, 3, S.sep],
        [S.cls, 5, S.sep, S.pad, S.pad],
        [S.cls, 6, 7, 8, S.sep],
    ]
    pairs = ClassificationRows(S, pairs=True, max_length=7)
    samples = make_samples([([1, 2, 3, 4], [5, 6, 7]), ([1], [2, 3, 4, 5, 6]), ([1, 2], [3])])
    assert pairs.row_lengths(samples.lengths).tolist() == [[7, 7, 6]]
    assert to_list(pairs.make_arrays(samples).source) == [
        [S.cls, 1, 2, S.sep, 5, 6, S.sep],
        [S.cls, 1, S.sep, 2, 3, 4, S.sep],
        [S.cls, 1, 2, S.sep, 3, S.sep, S.pad],
    ]


def test_tag_labels_the_first_token_of_a_word() -> None:
    rows = TaggingRows(S).make_arrays(make_samples([([1, 2, 3], [2, 0, 1]), ([4], [1])]))
    assert to_list(rows.source) == [[S.cls, 1, 2, 3, S.sep], [S.cls, 4, S.sep, S.pad, S.pad]]
    assert to_list(rows.labels) == [
        [IGNORE_INDEX, 1, IGNORE_INDEX, 0, IGNORE_INDEX],
        [IGNORE_INDEX, 0, IGNORE_INDEX, IGNORE_INDEX, IGNORE_INDEX],
    ]


every_task = pytest.mark.parametrize(
    "task",
    [
        TranslationRows(S, S),
        TranslationRows(S, S, language_tags=(70, 71)),
        ClassificationRows(S),
        ClassificationRows(S, pairs=True),
        ClassificationRows(S, max_length=31),
        ClassificationRows(S, pairs=True, max_length=27),
        TaggingRows(S),
        CbowRows(S),
        *NOISY,
    ],
    ids=lambda task: type(task).__name__,
)


def make_token_lists(task: RowMaker, count: int = 40) -> list[tuple[list[int], ...]]:
    pairs = [(first, second) for first, second in zip(make_texts(count, 1), make_texts(count, 2), strict=True)]
    if task.needs[-1] == "tags":
        pairs = [(first, [1] * len(first)) for first, _ in pairs]
    return [sample[: len(task.needs)] for sample in pairs]


@every_task
def test_rows_are_padded_to_the_shapes_of_batches(task: RowMaker) -> None:
    shapes = BatchShapes(16_384, 512)  # a grain of 128
    fill_values = {"source": S.pad, "source_valid": False, "target": S.pad, "labels": IGNORE_INDEX}
    padded = 0
    for count in (3, 5, 7, 9, 11):
        stored = make_samples(make_token_lists(task, count))
        narrow, wide = task.make_arrays(stored), task.make_arrays(replace(stored, shapes=shapes))
        for name, fill in fill_values.items():
            before, after = getattr(narrow, name), getattr(wide, name)
            if before is None or before.ndim == 1:  # a label a row
                assert np.array_equal(before, after)
                continue
            longer = before.shape[1]
            assert np.array_equal(after[:, :longer], before)
            assert (after[:, longer:] == fill).all()
            assert after.shape[1] == shapes.padded_width(count, longer)
            padded += after.shape[1] - longer
    assert padded


@every_task
def test_row_lengths_match_the_rows(task: RowMaker) -> None:
    used = make_token_lists(task)
    rows = task.make_arrays(make_samples(used))
    lengths = np.array([[len(sample[stream]) for sample in used] for stream in range(len(task.needs))])
    wide = [array.shape[1] for array in (rows.source, rows.target) if array is not None]
    assert wide == task.row_lengths(lengths).max(axis=1).tolist()


def test_whole_words_are_masked_together() -> None:
    text = ["the old house sees a red tree"]
    tokenizer = learn(text, ByteBpeConfig(vocabulary=290))
    pieces, text_ids = tokenizer.token_bytes, np.arange(tokenizer.size)
    words = (np.array(pieces.is_start), np.array(pieces.is_end))
    fill = MaskedLMRows(tokenizer.specials, 1, text_ids, masking="bert", boundaries=words)
    encoding = tokenizer.encode(text[0])
    for number in range(30):
        is_masked = fill.make_arrays(make_samples([(encoding.ids,)], numbers=[number])).labels[0, 1:-1] != IGNORE_INDEX
        masked_words = {word for word, masked in zip(encoding.word_ids, is_masked.tolist(), strict=True) if masked}
        assert [word in masked_words for word in encoding.word_ids] == is_masked.tolist()
