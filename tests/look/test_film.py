"""The page of a run: curves from metrics.jsonl, frames from film/, also while the run trains."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.look.film import LINEAR_POINTS, LOG_POINTS, RunPage, read_run
from regard.look.local import respond
from regard.look.page import DOCUMENT_START
from regard.training.run import fit
from tests.commands import run_command
from tests.training.runs import SHORT_RUN, make_small_run, read_metrics, write_corpus


@pytest.fixture(scope="module")
def filmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("film")
    fit(
        make_small_run("translation", write_corpus(folder / "corpus"), {**SHORT_RUN, "train.film_points": 5}),
        folder / "run",
    )
    return folder / "run"


@pytest.fixture
def copy(filmed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filmed, tmp_path / "run"))


def test_document_has_curves_and_frames(filmed: Path) -> None:
    document = RunPage([filmed]).document()
    (run,), film = document["runs"], document["film"]
    lines = [line for line in read_metrics(filmed) if "loss" in line]
    assert run["training"]["loss"]["steps"] == [1, 2, 3, 4]
    assert run["training"]["loss"]["values"] == pytest.approx([line["loss"] for line in lines], rel=1e-6)
    assert run["validation"]["bleu"]["steps"] == [2, 4]
    assert run["is_finished"]
    assert run["steps"] == 4
    assert film is not None
    assert [(frame["step"], frame["loss"]) for frame in film["frames"]] == [
        (0, None),
        *((line["step"], pytest.approx(line["loss"], rel=1e-6)) for line in lines),
    ]
    assert film["attention"] == {"name": "decoder.cross", "layers": 1, "heads": 2}
    assert film["default_head"][0] == 0
    assert film["default_head"][1] in (0, 1)


def test_steps_that_a_run_repeats_count_once(copy: Path) -> None:
    lines = [{"step": step, "loss": 9.0, "learning_rate": 0.1} for step in (1, 2, 3, 2, 3)]
    lines[3:] = [line | {"loss": 1.0} for line in lines[3:]]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (copy / "metrics.jsonl").write_text(text + '{"step": 4, "lo')
    assert read_run(copy)["training"]["loss"] == {"steps": [1, 2, 3], "values": [9.0, 1.0, 1.0]}


def test_long_curves_are_thinned_out_and_keep_their_mean(copy: Path) -> None:
    losses = np.random.default_rng(1).random(5000)
    lines = (json.dumps({"step": i + 1, "loss": loss, "learning_rate": 0.1}) for i, loss in enumerate(losses))
    (copy / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    curve = read_run(copy)["training"]["loss"]
    assert len(curve["steps"]) <= LINEAR_POINTS + LOG_POINTS
    assert curve["steps"][-1] == 5000
    widths = np.diff([0, *curve["steps"]])
    assert float(np.dot(widths, np.array(curve["values"], float))) / 5000 == pytest.approx(losses.mean(), rel=1e-5)
    assert curve["values"][0] == pytest.approx(losses[0], rel=1e-6)


def test_live_page_answers_with_news_only(copy: Path) -> None:
    page, headers = RunPage([copy]), {"Host": "127.0.0.1:80"}

    def ask(path: str) -> dict[str, object]:
        response = respond(page, "t", f"/t/{path}", headers, 80)
        assert response.status == 200
        return dict(json.loads(response.body))

    document = ask("document")
    assert document["live"] is True
    assert ask(f"document?version={document['version']}") == {"version": document["version"]}
    (copy / "film" / "00000004.json").unlink()
    news = ask(f"document?version={document['version']}")
    assert news["version"] != document["version"]
    assert "runs" in news
    assert respond(page, "t", "/t/other", headers, 80).status == 404


def test_damaged_frame_is_skipped_with_a_note(copy: Path) -> None:
    (copy / "film" / "00000002.json").write_text("{")
    document = RunPage([copy]).document()
    assert document["film"] is not None
    assert [frame["step"] for frame in document["film"]["frames"]] == [0, 1, 3, 4]
    assert "00000002.json" in document["notes"][0]


def test_command_saves_the_page_of_runs(copy: Path, filmed: Path, tmp_path: Path) -> None:
    shutil.rmtree(copy / "film")
    done = run_command("look", str(copy), "--against-run", str(filmed), "--save", str(tmp_path / "page.html"))
    assert done.code == 0, done.errors
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    start = page.index(DOCUMENT_START) + len(DOCUMENT_START)
    document = json.loads(page[start : page.index("</script>", start)])
    assert (len(document["runs"]), document["film"], document["live"]) == (2, None, False)
    refused = run_command("look", str(filmed), "A text.", "--against-run", str(copy))
    assert refused.code == 1
    assert "--against-run" in refused.errors
    ignored = run_command("look", str(filmed), "--against", "A text.", "--save", str(tmp_path / "no.html"))
    assert ignored.code == 1
    assert "need a text" in ignored.errors
    assert not (tmp_path / "no.html").exists()


def test_folder_without_a_run_is_refused(tmp_path: Path, filmed: Path) -> None:
    with pytest.raises(RegardError, match="not a run folder"):
        RunPage([filmed, tmp_path])
    with pytest.raises(RegardError, match="no such folder"):
        RunPage([tmp_path / "nothing"])
