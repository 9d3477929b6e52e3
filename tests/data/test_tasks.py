from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.config.run import ByteBpe, Specials
from regard.data.cuts import Shapes
from regard.data.rows import IGNORED, Records
from regard.data.tasks import Classify, Continue, Fill, Restore, Tag, Task, Translate, task_for
from regard.text.learn import learn
from regard.text.vocabularies import TokenizerPair
from tests.data.made import SPECIALS as S

ORDINARY = np.arange(80)


def records(samples: list[tuple[list[int], ...]], numbers: list[int] | None = None, epoch: int = 0) -> Records:
    count = len(samples)
    flat = [token for sample in samples for stream in sample for token in stream]
    return Records(
        tokens=np.array(flat, np.uint16),
        lengths=np.array([[len(sample[stream]) for sample in samples] for stream in range(len(samples[0]))]),
        samples=np.array(numbers if numbers is not None else range(count)),
        draws=np.full(count, epoch),
        languages=np.arange(count) % 2,
        labels=np.arange(count) - 1,
    )


def texts(count: int, seed: int = 0) -> list[list[int]]:
    draw = np.random.default_rng(seed)
    return [draw.integers(0, 80, int(size)).tolist() for size in draw.integers(0, 60, count)]


def listed(array: NDArray[np.int64] | None) -> list[list[int]]:
    assert array is not None
    return array.tolist()


def test_translate_forces_the_teacher() -> None:
    rows = Translate(S, S).rows(records([([1, 2, 3], [4]), ([5], [6, 7])]))
    assert listed(rows.source) == [[1, 2, 3, S.eos], [5, S.eos, S.pad, S.pad]]
    assert rows.source_real is not None
    assert rows.source_real.tolist() == [[True] * 4, [True, True, False, False]]
    assert listed(rows.target) == [[S.bos, 4, S.pad], [S.bos, 6, 7]]
    assert listed(rows.labels) == [[4, S.eos, IGNORED], [6, 7, S.eos]]


def test_translate_says_which_language_to_write() -> None:
    rows = Translate(S, S, tags=(70, 71)).rows(records([([1], [4]), ([5, 6], [7])]))
    assert listed(rows.source) == [[70, 1, S.eos, S.pad], [71, 5, 6, S.eos]]
    assert listed(rows.labels) == [[4, S.eos], [7, S.eos]]


def test_translate_with_two_vocabularies_and_nothing_to_say() -> None:
    other = replace(S, pad=190, begin=191, end=192)
    rows = Translate(S, other).rows(records([([], [4, 5]), ([1], [])]))
    assert listed(rows.source) == [[S.eos, S.pad], [1, S.eos]]
    assert listed(rows.target) == [[191, 4, 5], [191, 190, 190]]
    assert listed(rows.labels) == [[4, 5, 192], [192, IGNORED, IGNORED]]


def packed(pieces: list[tuple[list[int], int, int, int]]) -> Records:
    """Pieces as (document, begin, length, row); they store what the loader would read."""
    stored = [document[max(begin - 1, 0) : begin + length] for document, begin, length, _ in pieces]
    zeros = np.zeros(len(pieces), np.int64)
    return Records(
        tokens=np.array([token for part in stored for token in part], np.uint16),
        lengths=np.array([[length for _, _, length, _ in pieces]]),
        samples=np.arange(len(pieces)),
        draws=zeros,
        languages=zeros,
        labels=zeros,
        begins=np.array([begin for _, begin, _, _ in pieces]),
        wholes=np.array([len(document) for document, _, _, _ in pieces]),
        rows=np.array([row for _, _, _, row in pieces]),
    )


def test_continue_packs_documents_that_do_not_see_each_other() -> None:
    one, two = [1, 2], [11, 12, 13, 14]
    rows = Continue(S).rows(packed([(one, 0, 3, 0), (two, 0, 2, 0), (two, 2, 3, 1)]))
    assert listed(rows.target) == [[S.bos, 1, 2, S.bos, 11], [12, 13, 14, S.pad, S.pad]]
    assert listed(rows.labels) == [[1, 2, S.eos, 11, 12], [13, 14, S.eos, IGNORED, IGNORED]]
    assert listed(rows.documents) == [[0, 0, 0, 1, 1], [2, 2, 2, -1, -1]]
    assert listed(rows.positions) == [[0, 1, 2, 0, 1], [0, 1, 2, 0, 0]]


def test_continue_with_an_empty_document_and_a_piece_of_the_end_alone() -> None:
    rows = Continue(S).rows(packed([([], 0, 1, 0), ([7, 8], 2, 1, 0)]))
    assert listed(rows.target) == [[S.bos, 8]]
    assert listed(rows.labels) == [[S.eos, S.eos]]


def test_fill_hides_and_asks() -> None:
    some = texts(400)
    task = Fill(S, seed=1, ordinary=ORDINARY)
    rows = task.rows(records([(text,) for text in some]))
    assert rows.source is not None
    hidden = total = 0
    for number, text in enumerate(some):
        inner, labels = rows.source[number, 1 : len(text) + 1], rows.labels[number, 1 : len(text) + 1]
        assert rows.source[number, 0] == S.cls
        assert rows.source[number, len(text) + 1] == S.sep
        assert np.where(inner == S.mask, labels, inner).tolist() == text  # hidden or there, nothing else
        assert ((labels != IGNORED) == (inner == S.mask)).all()
        assert not text or (inner == S.mask).any()
        hidden, total = hidden + int((inner == S.mask).sum()), total + len(text)
    assert abs(hidden / total - 0.15) < 0.02
    assert (rows.labels != IGNORED).sum() == hidden


def test_fill_as_bert() -> None:
    some = texts(2000)
    rows = Fill(S, seed=1, ordinary=ORDINARY, how="bert").rows(records([(text,) for text in some]))
    assert rows.source is not None
    asked = rows.labels != IGNORED
    given, wanted = rows.source[asked], rows.labels[asked]
    masked, same = float((given == S.mask).mean()), float((given == wanted).mean())
    assert abs(masked - 0.8) < 0.02
    assert abs(same - 0.1 - 0.1 / 80) < 0.02
    assert given[given != S.mask].max() < 80  # a random token is text, never a special one
    flat = np.concatenate([rows.source[n, 1 : len(text) + 1] for n, text in enumerate(some)])
    kept = np.concatenate([~asked[n, 1 : len(text) + 1] for n, text in enumerate(some)])
    assert (flat[kept] == np.concatenate([np.array(text, np.int64) for text in some])[kept]).all()


def test_fill_hides_whole_words() -> None:
    opens = np.arange(100) % 3 == 0  # every third id opens a word
    closes = np.arange(100) % 7 == 6  # and after these one begins
    some = texts(300)
    rows = Fill(S, seed=1, ordinary=ORDINARY, words=(opens, closes)).rows(records([(text,) for text in some]))
    long = 0
    for number, text in enumerate(some):
        asked = (rows.labels[number, 1 : len(text) + 1] != IGNORED).tolist()
        words: list[list[bool]] = []
        for place, token in enumerate(text):
            if place == 0 or opens[token] or closes[text[place - 1]]:
                words.append([])
            words[-1].append(asked[place])
        assert all(len(set(word)) == 1 for word in words)
        long += sum(len(word) > 1 and word[0] for word in words)
    assert long > 100
    assert abs(float((rows.labels != IGNORED).sum()) / sum(map(len, some)) - 0.15) < 0.04  # at least one word of each


NOISY: list[Task] = [
    Fill(S, seed=1, ordinary=ORDINARY, how="bert"),
    Fill(S, seed=1, ordinary=ORDINARY, words=(np.arange(100) % 3 == 0, np.zeros(100, np.bool_))),
    Restore(S, tuple(range(100, 130)), seed=1),
]


@pytest.mark.parametrize("task", NOISY, ids=["bert", "words", "restore"])
def test_noise_depends_on_seed_epoch_and_sample_only(task: Task) -> None:
    some = texts(50, seed=3)
    whole = task.rows(records([(text,) for text in some], epoch=2))
    order = np.random.default_rng(0).permutation(50).tolist()
    for first in range(0, 50, 7):
        part = order[first : first + 7]
        rows = task.rows(records([(some[number],) for number in part], numbers=part, epoch=2))
        for row, number in enumerate(part):
            for one, all_of in ((rows.labels, whole.labels), (rows.source, whole.source), (rows.target, whole.target)):
                if one is not None and all_of is not None:
                    wide = min(one.shape[1], all_of.shape[1])
                    assert one[row, :wide].tolist() == all_of[number, :wide].tolist()
    for other in (task.rows(records([(text,) for text in some], epoch=3)),
                  task.rows(records([(text,) for text in some], numbers=list(range(1, 51)), epoch=2))):  # fmt: skip
        assert other.labels.shape != whole.labels.shape or (other.labels != whole.labels).any()


def test_restore_cuts_spans_that_can_be_put_back() -> None:
    marks = tuple(range(100, 130))
    task = Restore(S, marks, seed=5)
    some = texts(300)
    rows = task.rows(records([(text,) for text in some]))
    assert rows.source is not None
    assert rows.target is not None
    assert rows.source_real is not None
    spans = Counter[int]()
    for number, text in enumerate(some):
        source = rows.source[number][rows.source_real[number]].tolist()
        target = rows.labels[number][rows.labels[number] != IGNORED].tolist()
        assert source.pop() == S.eos
        assert target.pop() == S.eos
        assert rows.target[number, : len(target) + 1].tolist() == [S.bos, *target]
        found: dict[int, list[int]] = {}
        for token in target:
            found.setdefault(token, []) if token >= 100 else found[max(found)].append(token)
        assert list(found) == list(marks[: len(found)])  # each mark once, in order
        assert [t for token in source for t in (found[token] if token >= 100 else [token])] == text
        hidden = sum(map(len, found.values()))
        assert hidden == (min(max(1, round(len(text) * 0.15)), len(text) - 1) if len(text) > 1 else 0)
        assert (len(source) + 1, len(target) + 1) == tuple(task.measure(np.array([[len(text)]]))[:, 0].tolist())
        spans.update(len(span) for span in found.values())
    assert abs(sum(size * count for size, count in spans.items()) / spans.total() - 3) < 0.5
    assert len(spans) > 3


def test_restore_needs_enough_marks() -> None:
    with pytest.raises(RegardError, match="needs 3 marks; there are 2"):
        Restore(S, (100, 101), seed=1).rows(records([(list(range(60)),)]))


def test_classify_one_and_two() -> None:
    rows = Classify(S).rows(records([([1, 2],), ([3],)]))
    assert listed(rows.source) == [[S.cls, 1, 2, S.sep], [S.cls, 3, S.sep, S.pad]]
    assert rows.labels.tolist() == [IGNORED, 0]
    rows = Classify(S, pairs=True).rows(records([([1, 2], [5]), ([], [6])]))
    assert listed(rows.source) == [
        [S.cls, 1, 2, S.sep, 5, S.sep],
        [S.cls, S.sep, 6, S.sep, S.pad, S.pad],
    ]
    assert rows.source_real is not None
    assert rows.source_real.sum(axis=1).tolist() == [6, 4]


def test_of_long_texts_the_beginning_is_classified() -> None:
    task = Classify(S, longest=5)
    some = records([([1, 2, 3, 4],), ([5],), ([6, 7, 8],)])
    assert task.measure(some.lengths).tolist() == [[5, 3, 5]]
    assert task.whole(some.lengths).tolist() == [[6, 3, 5]]
    assert listed(task.rows(some).source) == [
        [S.cls, 1, 2, 3, S.sep],
        [S.cls, 5, S.sep, S.pad, S.pad],
        [S.cls, 6, 7, 8, S.sep],
    ]
    pairs = Classify(S, pairs=True, longest=7)
    some = records([([1, 2, 3, 4], [5, 6, 7]), ([1], [2, 3, 4, 5, 6]), ([1, 2], [3])])
    assert pairs.measure(some.lengths).tolist() == [[7, 7, 6]]
    assert listed(pairs.rows(some).source) == [
        [S.cls, 1, 2, S.sep, 5, 6, S.sep],
        [S.cls, 1, S.sep, 2, 3, 4, S.sep],
        [S.cls, 1, 2, S.sep, 3, S.sep, S.pad],
    ]


def test_tag_labels_the_first_piece_of_a_word() -> None:
    rows = Tag(S).rows(records([([1, 2, 3], [2, 0, 1]), ([4], [1])]))
    assert listed(rows.source) == [[S.cls, 1, 2, 3, S.sep], [S.cls, 4, S.sep, S.pad, S.pad]]
    assert listed(rows.labels) == [[IGNORED, 1, IGNORED, 0, IGNORED], [IGNORED, 0, IGNORED, IGNORED, IGNORED]]


every_task = pytest.mark.parametrize(
    "task",
    [
        Translate(S, S),
        Translate(S, S, tags=(70, 71)),
        Classify(S),
        Classify(S, pairs=True),
        Classify(S, longest=31),
        Classify(S, pairs=True, longest=27),
        Tag(S),
        *NOISY,
    ],
    ids=lambda task: type(task).__name__,
)


def samples_for(task: Task, count: int = 40) -> list[tuple[list[int], ...]]:
    some = [(first, second) for first, second in zip(texts(count, 1), texts(count, 2), strict=True)]
    if task.needs[-1] == "tags":
        some = [(first, [1] * len(first)) for first, _ in some]
    return [sample[: len(task.needs)] for sample in some]


@every_task
def test_rows_are_padded_to_the_shapes_of_batches(task: Task) -> None:
    shapes = Shapes(16_384, 512)  # a grain of 128
    empty = {"source": S.pad, "source_real": False, "target": S.pad, "labels": IGNORED}
    padded = 0
    for count in (3, 5, 7, 9, 11):
        stored = records(samples_for(task, count))
        narrow, wide = task.rows(stored), task.rows(replace(stored, shapes=shapes))
        for name, nothing in empty.items():
            before, after = getattr(narrow, name), getattr(wide, name)
            if before is None or before.ndim == 1:  # a label a row
                assert np.array_equal(before, after)
                continue
            longer = before.shape[1]
            assert np.array_equal(after[:, :longer], before)
            assert (after[:, longer:] == nothing).all()
            assert after.shape[1] == shapes.width(count, longer)
            padded += after.shape[1] - longer
    assert padded


@every_task
def test_rows_are_as_wide_as_measured(task: Task) -> None:
    used = samples_for(task)
    rows = task.rows(records(used))
    lengths = np.array([[len(sample[stream]) for sample in used] for stream in range(len(task.needs))])
    wide = [array.shape[1] for array in (rows.source, rows.target) if array is not None]
    assert wide == task.measure(lengths).max(axis=1).tolist()


def test_tasks_take_their_tokens_from_the_vocabulary() -> None:
    specials = Specials(languages=("de", "fr"), extra=("<x0>", "<x1>"))
    text = ["the old house sees a red tree"]
    words = learn(text, ByteBpe(vocabulary=290, specials=specials))
    both, own = TokenizerPair.joint(words), words.specials
    translate = task_for("translate", both, languages=(("en", "de"), ("en", "fr")))
    assert translate == Translate(own, own, tags=(own.language_id("de"), own.language_id("fr")))
    assert task_for("continue", both) == Continue(own)
    assert task_for("restore", both, seed=4) == Restore(own, (own.extra["<x0>"], own.extra["<x1>"]), seed=4)
    assert task_for("classify", both, pairs=True) == Classify(own, pairs=True)
    assert task_for("tag", both) == Tag(own)
    fill = task_for("fill", both, whole_words=True, how="bert")
    assert isinstance(fill, Fill)
    assert set(fill.ordinary.tolist()) == set(range(words.size)) - own.control
    encoding = words.encode(text[0])
    for number in range(30):
        asked = fill.rows(records([(encoding.ids,)], numbers=[number])).labels[0, 1:-1] != IGNORED
        hidden = {word for word, is_asked in zip(encoding.word_ids, asked.tolist(), strict=True) if is_asked}
        assert [word in hidden for word in encoding.word_ids] == asked.tolist()
