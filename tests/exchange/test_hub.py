"""Upload to a stub of the Hugging Face Hub, download from it, and what errors say."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import regard
from regard.base.errors import RegardError
from regard.exchange.hub import DOWNLOADED, parse_address, publish_model
from regard.exchange.importer import import_model
from tests.commands import run_command
from tests.exchange.hub_stub import HubStub, Repository, run_hub

MODEL = Path(__file__).parents[1] / "store" / "format-1" / "translator"
ADDRESS = "hf://anna/en-de"

pytestmark = pytest.mark.usefixtures("one_short_text")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStub]:
    with run_hub() as stub:
        monkeypatch.setenv("HF_ENDPOINT", stub.address)
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        yield stub


def test_model_goes_to_the_hub_and_back(hub: HubStub, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(MODEL, run / "best")
    shutil.copy(MODEL.parent / "run.toml", run)
    done = run_command("export", str(run), "--to", ADDRESS, "--license", "cc-by-4.0")
    assert done.code == 0, done.errors
    assert done.output.startswith(f"{ADDRESS}: MarianMTModel in float32")
    assert "; private: " in done.output
    repository = hub.repositories["anna/en-de"]
    assert repository.private
    assert "Bearer hf_secret" in hub.tokens
    assert {"README.md", "config.json", "model.safetensors", "tokenizer.json", "parity.json", "run.toml"} <= set(
        repository.files
    )
    card = repository.files["README.md"].decode()
    assert "library_name: transformers" in card
    assert 'license: "cc-by-4.0"' in card
    assert json.loads(repository.files["parity.json"])["passed"] is True

    repository.files |= {"pytorch_model.bin": b"\x80\x04.", "modeling.py": b"raise SystemExit"}
    done = run_command("import", ADDRESS, "--out", str(tmp_path / "back"))
    assert done.code == 0, done.errors
    downloads = [request for request in hub.requests if "/resolve/" in request]
    assert downloads
    assert not [request for request in downloads if request.endswith((".bin", ".py", ".toml"))]
    texts = ["Two dogs play.", "A cat sleeps."]
    first, second = (
        regard.load_translator(path).translate(texts, max_new_tokens=8) for path in (run, tmp_path / "back")
    )
    assert [result.tokens for result in first] == [result.tokens for result in second]


def test_second_export_adds_a_commit_and_keeps_the_repository_public(hub: HubStub) -> None:
    hub.repositories["anna/en-de"] = Repository(private=False)
    assert "public" in publish_model(MODEL, ADDRESS).summary


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("hf://anna", "This is not an address of the Hub."),
        ("hf://anna/missing", "The Hub has no such repository, or hides it."),
        ("hf://anna/en-de@v9", "The repository has no such revision."),
        ("hf://anna/en-de", "The repository has no weights in safetensors format."),
    ],
)
def test_import_error_names_the_address(hub: HubStub, address: str, message: str, tmp_path: Path) -> None:
    hub.repositories["anna/en-de"] = Repository(
        private=True, files={"pytorch_model.bin": b"\x80", "config.json": b"{}"}
    )
    with pytest.raises(RegardError) as raised:
        import_model(address, tmp_path / "model")
    assert (raised.value.message, raised.value.location) == (message, address)
    assert raised.value.hint
    assert not (tmp_path / "model").exists()


def test_hub_without_connection_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(RegardError, match="The Hub does not answer as expected"):
        import_model(ADDRESS, tmp_path / "model")
    with pytest.raises(RegardError, match="The Hub does not answer as expected"):
        publish_model(MODEL, ADDRESS)


def test_upload_with_out_or_revision_is_refused(tmp_path: Path) -> None:
    done = run_command("export", str(MODEL), "--to", ADDRESS, "--out", str(tmp_path / "folder"))
    assert done.code != 0
    assert "An upload writes no folder." in done.errors
    with pytest.raises(RegardError, match="An export goes to the main branch"):
        publish_model(MODEL, f"{ADDRESS}@v1")


def test_download_patterns_name_no_code() -> None:
    assert not any(pattern.endswith((".py", ".bin", ".pt", ".pkl", "*")) for pattern in DOWNLOADED)
    assert parse_address("hf://anna/en-de/").repository == "anna/en-de"
