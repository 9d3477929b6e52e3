"""Transcripts."""

from pathlib import Path

from regard.tasks.load import load_transcriber
from tests.serve.factories import RunningServer, save, transcribe
from tests.tasks.media_models import make_wav


def test_transcripts(media_server: RunningServer, media_folders: dict[str, Path], tmp_path: Path) -> None:
    content = make_wav(3)
    expected = load_transcriber(media_folders["speech"]).transcribe(save(tmp_path, content, "a.wav"), n_best=3)
    answer = transcribe(media_server, content, model="speech", alternatives="2").raise_for_status().json()
    assert answer["text"] == expected.text
    assert answer["alternatives"] == [alternative.text for alternative in expected.alternatives]
    assert answer["usage"] == {"type": "duration", "seconds": 0.3}
    assert transcribe(media_server, content, response_format="text").text == f"{expected.text}\n"
    for fields, word in (
        ({"model": "tones"}, "/classify"),
        ({"temperature": "0.5"}, "temperature"),
        ({"prompt": "Hm."}, "prompt"),
        ({"stream": "true"}, "stream"),
        ({"response_format": "srt"}, "json"),
        ({"beam_size": "99"}, "beams"),
        ({"alternatives": "8"}, "alternatives"),
    ):
        refused = transcribe(media_server, content, **fields)
        assert refused.status_code == 422, fields
        assert word in refused.json()["error"]["message"]
    assert transcribe(media_server, content, model="none").status_code == 404
