"""Documents: every sentence is translated, and the white space stays."""

from regard.pipeline.search import Beam
from regard.pipeline.translator import Translator
from tests.pipeline.factories import make_encoder_decoder, make_tokenizers, make_translator_settings


def test_a_document_keeps_its_white_space() -> None:
    settings = make_translator_settings()
    translator = Translator(make_encoder_decoder(settings), make_tokenizers(), settings)
    text = "\n  A bee. C dee!  E\n\nF.\n"
    document = translator.translate_document(text, Beam(1), max_length=5)
    assert document.sources == ("A bee.", "C dee!", "E", "F.")
    spaces = [" ", "  ", "\n\n", "\n"]
    one_by_one = [translator.translate([source], Beam(1), max_length=5)[0].text for source in document.sources]
    assert document.text == "\n  " + "".join(text + space for text, space in zip(one_by_one, spaces, strict=True))
    for before, after in (("   ", ""), ("", "  "), ("\t", " \n")):
        around = translator.translate_document(f"{before}E{after}", Beam(1), max_length=5)
        assert around.text == before + one_by_one[2] + after
    for empty in ("", "   ", "\n"):
        assert translator.translate_document(empty).text == empty
