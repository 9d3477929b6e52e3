from collections.abc import Sequence

from regard.documents.registry import find_format
from regard.documents.segment import Segment, Span
from regard.documents.translate import MAX_SPANS, Sentence, TranslatedSentence, translate_document
from regard.documents.txt import TextFormat


def translate_text(text: str, translate: dict[str, str]) -> tuple[str, dict[str, object], list[list[Sentence]]]:
    """Translate lines with a dictionary; a required phrase is in the result only if the key says so."""
    rounds = list[list[Sentence]]()

    def run(sentences: list[Sentence]) -> Sequence[TranslatedSentence]:
        rounds.append(sentences)
        keys = [" + ".join([sentence.text, *sentence.required]) for sentence in sentences]
        return [TranslatedSentence(translate.get(key, key)) for key in keys]

    data, report = translate_document(TextFormat().read(text.encode()), run)
    return data.decode(), report.to_dict(), [batch for batch in rounds if batch]


def test_document_is_translated_sentence_by_sentence_and_each_once() -> None:
    output, report, rounds = translate_text("One. Two.\n\n Two. \n", {"One.": "Eins.", "Two.": "Zwei."})
    assert output == "Eins. Zwei.\n\n Zwei. \n"
    assert [[sentence.text for sentence in batch] for batch in rounds] == [["One.", "Two."]]
    assert report == {"segments": 2, "sentences": 3, "attention": []}


def test_document_lines_without_words_are_copied() -> None:
    output, report, rounds = translate_text("---\n12.5 %\n{name} https://a.b\n", {})
    assert output == "---\n12.5 %\n{name} https://a.b\n"
    assert rounds == []
    assert report["attention"] == []


def test_lost_placeholder_is_required_and_then_inserted_and_reported() -> None:
    lost = {"Delete %s now?": "Jetzt löschen?", "Delete %s now? + %s": "Jetzt %s löschen?"}
    output, report, rounds = translate_text("Delete %s now?\n", lost)
    assert output == "Jetzt %s löschen?\n"
    assert rounds[1] == [Sentence("Delete %s now?", ("%s",), should_align=True)]
    assert report["attention"] == []

    output, report, _ = translate_text("Delete %s now?\n", lost | {"Delete %s now? + %s": "Jetzt?"})
    assert output.split() in (["Jetzt", "%s", "löschen?"], ["%s", "Jetzt", "löschen?"], ["Jetzt", "löschen?", "%s"])
    assert report["attention"] == [
        {
            "segment": 1,
            "location": "line 1",
            "source": "Delete %s now?",
            "translation": output.strip(),
            "reasons": ["inserted by position: %s"],
        }
    ]


def test_white_space_around_a_sentence_is_that_of_the_source() -> None:
    document = find_format("a.json").read(b'{"a": " Two. ", "b": "One."}')
    texts = {" Two.": "Zwei.", "Two.": "Zwei.", "One.": " Eins. "}
    data, _ = translate_document(
        document, lambda sentences: [TranslatedSentence(texts[sentence.text]) for sentence in sentences]
    )
    assert data == b'{"a": " Zwei. ", "b": "Eins."}'


def test_stray_mark_of_a_placeholder_is_reported() -> None:
    # As a conversion, "%en" would read one argument more than the program passes.
    output, report, _ = translate_text("%s has %d friends.\n", {"%s has %d friends.": "%s hat %d%en Freunde."})
    assert output == "%s hat %d%en Freunde.\n"
    assert report["attention"] == [
        {
            "segment": 1,
            "location": "line 1",
            "source": "%s has %d friends.",
            "translation": "%s hat %d%en Freunde.",
            "reasons": ["another number of % than the source"],
        }
    ]


def test_second_translation_with_more_warnings_is_not_used() -> None:
    def translate(sentences: list[Sentence]) -> Sequence[TranslatedSentence]:
        again = bool(sentences[0].required)
        return [TranslatedSentence("%s " * 9 if again else "Jetzt?", warnings=("cut off",) * again)]

    output, report = translate_document(TextFormat().read(b"Delete %s now?"), translate)
    assert sorted(output.decode().split()) == ["%s", "Jetzt?"]
    assert [entry["reasons"] for entry in report.attention] == [["inserted by position: %s"]]


def test_lost_number_is_required_and_then_reported() -> None:
    wrong = {"Call 911.": "Ruf 112.", "Call 911. + 911": "Ruf 911."}
    assert translate_text("Call 911.", wrong)[0] == "Ruf 911."
    output, report, _ = translate_text("Call 911.", wrong | {"Call 911. + 911": "Ruf!"})
    assert output == "Ruf 112."  # not better: the first translation stays
    assert [entry["reasons"] for entry in report["attention"]] == [["without the number 911"]]  # type: ignore[attr-defined]


def test_empty_translation_keeps_the_source_and_is_reported() -> None:
    output, report, _ = translate_text("One. Two.", {"One.": " ", "Two.": "Zwei."})
    assert output == "One. Zwei."
    assert [entry["reasons"] for entry in report["attention"]] == [["not translated: the model returned nothing"]]  # type: ignore[attr-defined]


def test_warnings_of_the_model_are_reported() -> None:
    document = TextFormat().read(b"One.")
    _, report = translate_document(document, lambda _: [TranslatedSentence("Eins.", warnings=("unsure",))])
    assert report.attention[0]["reasons"] == ["unsure"]


def test_sentence_with_too_many_tags_is_copied_and_reported() -> None:
    class Tagged:
        segments = (Segment("a b", tuple(Span(1, 1, number, "point") for number in range(MAX_SPANS + 1))),)

        def write(self, translations: Sequence[Segment]) -> bytes:
            assert tuple(translations) == self.segments
            return b""

    _, report = translate_document(Tagged(), lambda _: [])
    (reason,) = report.attention[0]["reasons"]
    assert reason.startswith(f"not translated: more than {MAX_SPANS} tags")
