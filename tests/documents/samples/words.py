"""Random text."""

import random

WORDS = """
    the a house river old new blue report page table city people year water light small is was has sees opens reads
    between under with from and or but never often today Anna Berlin company market price letter train
    """.split()  # noqa: SIM905 - one word per name
ODD = (
    "R&D",
    "<b>",
    "5 < 6",
    '"quoted"',
    "it's",
    "naïve",
    "Größe",
    "日本語",
    "🙂",
    "100 %",
    "%s",
    "{name}",
    "a_b",
    "C:\\x",
    "e\u0301",
)


def sentence(rng: random.Random, *, has_odd: bool = True) -> str:
    """Return 1 to 12 words that end in a full stop."""
    words = [rng.choice(ODD if has_odd and rng.random() < 0.08 else WORDS) for _ in range(rng.randint(1, 12))]
    words.insert(0, rng.choice(WORDS).capitalize())
    return " ".join(words) + rng.choice(".....!?")


def paragraph(rng: random.Random, *, has_odd: bool = True) -> str:
    """Return 1 to 4 sentences."""
    return " ".join(sentence(rng, has_odd=has_odd) for _ in range(rng.randint(1, 4)))


def cut(rng: random.Random, text: str, most: int = 6) -> list[str]:
    """Cut a text into parts at random places, inside words too."""
    places = sorted(rng.sample(range(1, len(text)), min(len(text) - 1, rng.randint(0, most - 1))))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
