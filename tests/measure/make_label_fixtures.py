"""Write label_fixtures.json: random labels and tags with the scores of scikit-learn and seqeval.

Run it where both are installed; Regard and its tests need neither:

    python tests/measure/make_label_fixtures.py
"""

import json
import random
import warnings
from pathlib import Path
from typing import Any

from seqeval.metrics import f1_score as entity_f1_score  # type: ignore[import-not-found]
from seqeval.metrics import precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities  # type: ignore[import-not-found]
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, matthews_corrcoef  # type: ignore[import-not-found]

FIXTURES = Path(__file__).parent / "label_fixtures.json"


def make_classification_case(chance: random.Random, labels: list[str], count: int, skill: float) -> dict[str, Any]:
    """Labels of which about `skill` are predicted correctly."""
    weights = [chance.random() ** 2 for _ in labels]
    expected = chance.choices(labels, weights, k=count)
    predicted = [label if chance.random() < skill else chance.choice(labels) for label in expected]
    return {
        "predicted": predicted,
        "expected": expected,
        "accuracy": accuracy_score(expected, predicted),
        "macro_f1": f1_score(expected, predicted, average="macro", zero_division=0.0),
        "matthews": matthews_corrcoef(expected, predicted),
        "counts": confusion_matrix(expected, predicted).tolist(),
    }


def make_entity_case(chance: random.Random, tags: list[str], sentences: int, skill: float) -> dict[str, Any]:
    """Random tag sequences: almost none of them keeps to a scheme."""
    expected = [[chance.choice(tags) for _ in range(chance.randint(0, 9))] for _ in range(sentences)]
    predicted = [[tag if chance.random() < skill else chance.choice(tags) for tag in row] for row in expected]
    return {
        "predicted": predicted,
        "expected": expected,
        "entities": [get_entities(row) for row in expected],
        "precision": precision_score(expected, predicted),
        "recall": recall_score(expected, predicted),
        "f1": entity_f1_score(expected, predicted),
    }


def main() -> None:
    """Write the file."""
    warnings.simplefilter("ignore")
    chance = random.Random(1)
    classification = [
        make_classification_case(chance, ["no", "yes"], 40, 0.8),
        make_classification_case(chance, list("abcdef"), 60, 0.5),
        make_classification_case(chance, [f"label {number}" for number in range(50)], 200, 0.6),
        make_classification_case(chance, ["no", "yes"], 12, 0.0),
        make_classification_case(chance, ["only"], 5, 1.0),
    ]
    bio = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    entities = [
        make_entity_case(chance, bio, 40, 0.7),
        make_entity_case(chance, bio, 40, 0.2),
        make_entity_case(chance, ["O", "I-PER", "I-LOC"], 30, 0.6),
        make_entity_case(chance, [*bio, "E-PER", "S-PER", "E-LOC", "S-LOC"], 60, 0.6),
        make_entity_case(chance, ["O", "B-creative-work", "I-creative-work", "I-corporation"], 30, 0.6),
        make_entity_case(chance, ["O", "O", "O", "B-PER"], 6, 0.0),
        make_entity_case(chance, ["O"], 3, 1.0),
    ]
    cases = {"classification": classification, "entities": entities}
    FIXTURES.write_text(json.dumps(cases, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
