"""Files that are not regular: links out of the folder, pipes without a writer, endless devices."""

import os
import shutil
import socket
from pathlib import Path

from regard.data.shards.stored import INDEX_FILE
from tests.hostile.attack import attack
from tests.hostile.corpora import find_description
from tests.hostile.doors import Place


def _make_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _make_link(path: Path, target: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


@attack("load", r"model\.safetensors is missing")
def link_to_weights(place: Place) -> None:
    """The weights are a link to a file outside, with the content that the manifest names."""
    shutil.move(place.folder / "model.safetensors", place.outside)
    _make_link(place.folder / "model.safetensors", place.outside / "model.safetensors")


@attack("load", r"README\.md is missing")
def link_to_a_device(place: Place) -> None:
    """The card is a link to an endless device."""
    _make_link(place.folder / "README.md", Path("/dev/zero"))


@attack("load", r"everything is not in the manifest")
def link_to_the_whole_disk(place: Place) -> None:
    """A link in the folder to the root of the disk."""
    _make_link(place.folder / "everything", Path("/"))


@attack("load", r"round/about is not in the manifest")
def links_in_a_circle(place: Place) -> None:
    """A folder with a link to itself."""
    (place.folder / "round").mkdir()
    _make_link(place.folder / "round" / "about", place.folder / "round")


@attack("load", r"model\.toml is missing")
def pipe_for_settings(place: Place) -> None:
    """model.toml is a named pipe without a writer."""
    _make_pipe(place.folder / "model.toml")


@attack("load", r"no manifest")
def pipe_for_manifest(place: Place) -> None:
    """The manifest is a named pipe without a writer."""
    _make_pipe(place.folder / "manifest.json")


@attack("load", r"tokenizer\.json is missing")
def socket_for_vocabulary(place: Place) -> None:
    """The tokenizer file is a socket."""
    (place.folder / "tokenizer.json").unlink()
    before = Path.cwd()
    os.chdir(place.folder)  # the path of a socket is limited in length
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("tokenizer.json")
    os.chdir(before)


@attack("load", r"model\.safetensors is missing")
def folder_for_weights(place: Place) -> None:
    """The weights are a folder."""
    (place.folder / "model.safetensors").unlink()
    (place.folder / "model.safetensors").mkdir()


@attack("resume", "not a regular file")
def journal_linked_out(place: Place) -> None:
    """metrics.jsonl, which training appends to, is a link to a file of the user."""
    _make_link(place.folder / "metrics.jsonl", place.outside / "victim.txt")


@attack("resume", "not a regular file")
def timing_linked_to_a_new_file(place: Place) -> None:
    """timing.jsonl is a link to a file that does not exist yet."""
    _make_link(place.folder / "timing.jsonl", place.outside / "new.txt")


@attack("resume", "hard-linked")
def journal_hard_linked(place: Place) -> None:
    """metrics.jsonl is a second name (a hard link) of a file of the user."""
    (place.folder / "metrics.jsonl").unlink()
    (place.folder / "metrics.jsonl").hardlink_to(place.outside / "victim.txt")


@attack("resume", "not a regular file")
def checkpoints_linked_out(place: Place) -> None:
    """The checkpoints, which training removes when they are old, are those of another run."""
    shutil.move(place.folder / "checkpoints", place.outside / "checkpoints")
    _make_link(place.folder / "checkpoints", place.outside / "checkpoints")


@attack("resume", "not a regular file")
def older_model_linked_out(place: Place) -> None:
    """best.old, which a start removes or renames, is a link to a folder outside."""
    _make_link(place.folder / "best.old", place.outside)


@attack("resume", "not a regular file")
def tensorboard_linked_out(place: Place) -> None:
    """tensorboard/, where --track writes, is a link to a folder outside."""
    _make_link(place.folder / "tensorboard", place.outside)


@attack("resume", "not a regular file")
def wandb_linked_out(place: Place) -> None:
    """A folder in wandb/ is a link to a folder outside."""
    (place.folder / "wandb").mkdir()
    _make_link(place.folder / "wandb" / "latest-run", place.outside)


@attack("resume", "not a regular file")
def mlflow_linked_out(place: Place) -> None:
    """mlflow.db is a link to a file of the user."""
    _make_link(place.folder / "mlflow.db", place.outside / "victim.txt")


@attack("resume", "hard-linked")
def mlflow_journal_hard_linked(place: Place) -> None:
    """The journal of mlflow.db is a second name of a file of the user."""
    (place.folder / "mlflow.db-journal").hardlink_to(place.outside / "victim.txt")


@attack("resume", "hard-linked")
def tensorboard_hard_linked(place: Place) -> None:
    """A file in tensorboard/ is a second name of a file of the user."""
    (place.folder / "tensorboard").mkdir()
    (place.folder / "tensorboard" / "events").hardlink_to(place.outside / "victim.txt")


@attack("resume", "not a regular file")
def experiments_linked_out(place: Place) -> None:
    """trackers.json, from which a run takes the experiment to write to, is a link."""
    _make_link(place.folder / "trackers.json", place.outside / "victim.txt")


@attack("resume", "not a regular file")
def pipe_for_corpus_facts(place: Place) -> None:
    """corpus.json is a named pipe without a writer."""
    _make_pipe(place.folder / "corpus.json")


@attack("resume", "not a run folder")
def pipe_for_run(place: Place) -> None:
    """run.toml is a named pipe without a writer."""
    _make_pipe(place.folder / "run.toml")


@attack("vocabulary", "no tokenizer.json")
def pipe_for_vocabulary(place: Place) -> None:
    """tokenizer.json is a named pipe without a writer."""
    _make_pipe(place.folder / "tokenizer.json")


@attack("prepared", "not a regular file")
def pipe_for_corpus(place: Place) -> None:
    """corpus.json of a prepared corpus is a named pipe."""
    _make_pipe(place.folder / "corpus.json")


@attack("prepared", "not a regular file")
def pipe_for_shard(place: Place) -> None:
    """The description of a shard is a named pipe."""
    _make_pipe(find_description(place))


@attack("prepared", "not a regular file")
def pipe_for_index(place: Place) -> None:
    """The index of the shards is a named pipe."""
    _make_pipe(place.folder / INDEX_FILE)


@attack("corpus", "not a regular file")
def pipe_for_text(place: Place) -> None:
    """The text to train on is a named pipe."""
    _make_pipe(place.folder / "all.en")


@attack("corpus", "not a regular file")
def device_for_text(place: Place) -> None:
    """The text to train on is a link to an endless device."""
    _make_link(place.folder / "all.en", Path("/dev/zero"))


LEAVES = "a link to a file outside the folder"


def _link_out(place: Place, name: str) -> None:
    """Move a file out of the folder and leave a link: its content stays valid."""
    shutil.move(place.folder / name, place.outside / Path(name).name)
    _make_link(place.folder / name, place.outside / Path(name).name)


@attack("import", LEAVES)
def card_linked_out(place: Place) -> None:
    """README.md, which becomes the model card, is a link to a private file."""
    _make_link(place.folder / "README.md", place.outside / "victim.txt")


@attack("import", LEAVES)
def chat_template_linked_out(place: Place) -> None:
    """chat_template.jinja, which is copied into the model, is a link to a private file."""
    _make_link(place.folder / "chat_template.jinja", place.outside / "victim.txt")


@attack("import", LEAVES)
def chat_template_linked_relatively(place: Place) -> None:
    """chat_template.jinja is a relative link to a private file."""
    _make_link(place.folder / "chat_template.jinja", Path("../outside/victim.txt"))


@attack("import", LEAVES)
def safetensors_linked_out(place: Place) -> None:
    """model.safetensors is a link to valid weights outside the folder."""
    _link_out(place, "model.safetensors")


@attack("import", LEAVES)
def shard_linked_out(place: Place) -> None:
    """The index names a shard that is a link to valid weights outside the folder."""
    shutil.move(place.folder / "model.safetensors", place.outside / "weights")
    _make_link(place.folder / "a.safetensors", place.outside / "weights")
    (place.folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "a.safetensors"}}')


@attack("import", LEAVES)
def config_linked_out(place: Place) -> None:
    """config.json is a link to a valid file outside the folder."""
    _link_out(place, "config.json")


@attack("import", LEAVES)
def tokenizer_linked_out(place: Place) -> None:
    """tokenizer.json is a link to a valid file outside the folder."""
    _link_out(place, "tokenizer.json")


@attack("import", LEAVES)
def pooling_folder_linked_out(place: Place) -> None:
    """1_Pooling/ of a sentence encoder is a link to a folder outside."""
    (place.outside / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    _make_link(place.folder / "1_Pooling", place.outside)


@attack("import", LEAVES)
def blobs_linked_out(place: Place) -> Path:
    """A folder in the form of the Hugging Face cache, whose blobs/ is a link to a folder outside."""
    repository = place.folder.parent / "models--a--b"
    (repository / "snapshots").mkdir(parents=True)
    place.folder.rename(repository / "snapshots" / "1")
    _make_link(repository / "blobs", place.outside)
    _make_link(repository / "snapshots" / "1" / "README.md", Path("../../blobs/victim.txt"))
    return repository / "snapshots" / "1"


@attack("import", "cannot be read")
def card_linked_to_itself(place: Place) -> None:
    """README.md is a link to itself."""
    _make_link(place.folder / "README.md", Path("README.md"))


@attack("import", "not a regular file")
def pipe_for_shard_of_weights(place: Place) -> None:
    """The index names a shard that is a named pipe without a writer."""
    (place.folder / "model.safetensors").unlink()
    _make_pipe(place.folder / "a.safetensors")
    (place.folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "a.safetensors"}}')


@attack("import", "not a regular file")
def pipe_for_config(place: Place) -> None:
    """config.json is a named pipe without a writer."""
    _make_pipe(place.folder / "config.json")
