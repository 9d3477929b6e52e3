"""Labels of CBOW and skip-gram."""

from collections import Counter

from regard.base.labels import IGNORE_INDEX
from regard.tasks.word_vectors import CbowRows, SkipGramRows
from tests.data.batches.factories import make_samples, to_list
from tests.data.factories import SPECIALS as S


def test_cbow_labels_every_token_that_has_neighbours() -> None:
    rows = CbowRows(S).make_arrays(make_samples([([1, 2, 3],), ([4],), ([],)]))
    assert to_list(rows.source) == [[1, 2, 3], [4, S.pad, S.pad], [S.pad] * 3]
    assert to_list(rows.labels) == [[1, 2, 3], [IGNORE_INDEX] * 3, [IGNORE_INDEX] * 3]


def test_skip_gram_labels_tokens_with_all_of_their_neighbours_alike() -> None:
    text = list(range(10, 30))
    counts = Counter[tuple[int, int]]()
    for epoch in range(400):
        rows = SkipGramRows(S, seed=1, window=2).make_arrays(make_samples([(text,)], epoch=epoch))
        assert to_list(rows.source) == [text]
        labels = to_list(rows.labels)[0]
        counts.update((place, label - text[place]) for place, label in enumerate(labels) if label != IGNORE_INDEX)
    assert {offset for _, offset in counts} == {-2, -1, 1, 2}
    assert min(place for place, _ in counts) == 0
    assert (0, -1) not in counts
    middle = [counts[10, offset] for offset in (-2, -1, 1, 2)]
    assert sum(middle) == 400
    assert min(middle) > 70  # 100 in the mean
