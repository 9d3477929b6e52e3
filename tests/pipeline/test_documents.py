"""Documents: every sentence is translated, and the white space is the document's own."""

from regard.pipeline.documents import translate_document
from regard.pipeline.translator import Translator
from tests.pipeline.made import translating_model, translator_settings, vocabularies


def test_a_document_keeps_its_white_space() -> None:
    settings = translator_settings()
    translator = Translator(translating_model(settings), vocabularies(), settings)
    text = "\n  A bee. C dee!  E\n\nF.\n"
    found = translate_document(translator, text, beam=1, longest=5)
    assert found.sources == ("", "A bee.", "C dee!", "E", "F.")
    spaces = ["\n  ", " ", "  ", "\n\n", "\n"]
    one_by_one = [translator.translate([source], beam=1, longest=5)[0].text for source in found.sources]
    assert found.text == "".join(text + space for text, space in zip(one_by_one, spaces, strict=True))
    assert translate_document(translator, "").text == ""
