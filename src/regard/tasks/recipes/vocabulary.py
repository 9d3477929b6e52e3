"""Choose the tokenizer and vocabulary size for a corpus."""

from math import log

from regard.config.tokenizers import ByteBpeConfig, CharacterLevelConfig, NoTokenizerConfig, RunTokenizerConfig
from regard.data.stats import CorpusStats, SideStats
from regard.tasks.recipes.corpus import CorpusRequest

CHARACTER_LEVEL = 0  # as a vocabulary size: every character is a token
MAX_CHARACTER_VOCABULARY = 500  # distinct characters; with more, subwords are used
MAX_ENTRY_CHARACTERS = 12  # maximum mean length of examples that are single words (a lexicon), not sentences
FALLBACK_VOCABULARY = 4000  # for a text with too many distinct characters for a character-level model
LEXICON_VOCABULARY = 512  # for a lexicon: letters and frequent letter groups
SPECIAL_TOKENS = 7  # in every vocabulary


class VocabularyRule:
    """Chooses a tokenizer. This base class chooses none, for models without text."""

    reads_text = False  # whether it tokenizes text, for which a prepared corpus may already have tokenizers

    def size(self, corpus: CorpusRequest, default: int) -> int:  # noqa: ARG002
        """Return the vocabulary size; `default` is the recipe's, or CHARACTER_LEVEL."""
        return 0

    def choose(self, corpus: CorpusRequest, size: int, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:  # noqa: ARG002
        """Return the tokenizer and its vocabulary size, and append the reason."""
        return NoTokenizerConfig(), 0


class Characters(VocabularyRule):
    """Character-level vocabulary of the target texts."""

    reads_text = True

    def size(self, corpus: CorpusRequest, default: int) -> int:  # noqa: ARG002
        """Return the number of characters and special tokens."""
        return len(corpus.stats.target.alphabet) + SPECIAL_TOKENS

    def choose(self, corpus: CorpusRequest, size: int, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:
        """Return a character-level tokenizer."""
        reasons.append(f"Vocabulary: the {len(corpus.stats.target.alphabet)} distinct characters of the texts.")
        return CharacterLevelConfig(), size


class Subwords(VocabularyRule):
    """Byte-level BPE, sized for the corpus; characters for a short text."""

    reads_text = True

    def size(self, corpus: CorpusRequest, default: int) -> int:
        """Return the requested size, or the default unless the corpus has few words or is a lexicon."""
        if requested := corpus.requested("tokenizer.vocabulary"):
            return requested
        stats = corpus.stats
        kind = corpus.changes.get("tokenizer.kind", "character" if default == CHARACTER_LEVEL else "")
        if kind == "character" and len(stats.source.alphabet | stats.target.alphabet) <= MAX_CHARACTER_VOCABULARY:
            return CHARACTER_LEVEL
        if _is_lexicon(stats):
            return LEXICON_VOCABULARY
        return min(default or FALLBACK_VOCABULARY, _max_useful_size(stats))

    def choose(self, corpus: CorpusRequest, size: int, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:
        """Return a character or subword tokenizer."""
        stats = corpus.stats
        if size == CHARACTER_LEVEL:
            character_count = len(stats.source.alphabet | stats.target.alphabet)
            reasons.append(f"Vocabulary: the {character_count} distinct characters of the text.")
            return CharacterLevelConfig(), character_count + SPECIAL_TOKENS
        sides = ", shared by both sides" if stats.content == "pairs" else ""
        if _is_lexicon(stats):
            reasons.append(
                f"Vocabulary: {size} tokens of byte-level BPE{sides}: the examples are words "
                f"({stats.mean_length:.0f} characters), and larger subwords would hide their spelling."
            )
        else:
            only = "only " if size == _max_useful_size(stats) else ""
            reasons.append(
                f"Vocabulary: {size:,} tokens of byte-level BPE (no unknown tokens){sides}; "
                f"the text has {only}{stats.distinct_count:,} distinct words."
            )
        return ByteBpeConfig(vocabulary=size), size


def _is_lexicon(stats: CorpusStats) -> bool:
    return stats.content == "pairs" and stats.mean_length <= MAX_ENTRY_CHARACTERS


def _max_useful_size(stats: CorpusStats) -> int:
    return max(512, 2 * stats.distinct_count)


def estimate_tokens(side: SideStats, vocabulary_size: int) -> float:
    """Estimate the number of tokens on one side of a corpus."""
    return side.characters if vocabulary_size == CHARACTER_LEVEL else side.bytes / bytes_per_token(vocabulary_size)


def bytes_per_token(vocabulary_size: int) -> float:
    """Estimate bytes per token: fitted to English and German with vocabularies of 1,000 to 32,000."""
    return max(1.0, 0.66 * log(vocabulary_size) - 1.8)
