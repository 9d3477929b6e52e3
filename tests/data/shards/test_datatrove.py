import sys
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config.sources import AnySourceConfig, LinesConfig
from regard.data.shards.datatrove import ReadSources, SealCorpus, WriteShards
from regard.data.shards.prepare import open_corpus
from tests.data.shards.factories import TOKENIZERS, hash_files, run_prepare, write_corpus

SIZE = 2000


def make_sources(folder: Path) -> tuple[AnySourceConfig, ...]:
    """Five sources: the pairs of two files, and parts of them."""
    first, second = write_corpus(folder, 200)
    parts: list[AnySourceConfig] = []
    for number in range(3):
        for side in ("en", "de"):
            lines = (folder / f"a.{side}").read_bytes().split(b"\n")
            (folder / f"{number}.{side}").write_bytes(b"\n".join(lines[number * 20 : number * 20 + 20]) + b"\n")
        parts.append(LinesConfig(source=str(folder / f"{number}.en"), target=str(folder / f"{number}.de")))
    return (first, second, *parts)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_tasks_make_what_prepare_makes(tmp_path: Path, tasks: int) -> None:
    executors = pytest.importorskip("datatrove.executor.local", reason="the extra `cluster` is not installed")
    sources = make_sources(tmp_path)
    (tmp_path / "words").mkdir()
    TOKENIZERS.save(tmp_path / "words")
    out = str(tmp_path / "out")
    steps = [ReadSources(sources), WriteShards(sources, str(tmp_path / "words"), out, SIZE)]
    writing = executors.LocalPipelineExecutor(steps, tasks=tasks, workers=1, logging_dir=str(tmp_path / "logs"))
    sealing = executors.LocalPipelineExecutor(
        [SealCorpus(sources, out)], depends=writing, logging_dir=str(tmp_path / "seal")
    )
    sealing.run()
    run_prepare(list(sources), tmp_path / "alone", size=SIZE)
    assert hash_files(tmp_path / "out") == hash_files(tmp_path / "alone")
    assert len(open_corpus(tmp_path / "out", verify=True)) == 460


def test_nothing_is_sealed_before_all_is_written(tmp_path: Path) -> None:
    sources = make_sources(tmp_path)
    (tmp_path / "words").mkdir()
    TOKENIZERS.save(tmp_path / "words")
    write = WriteShards(sources, str(tmp_path / "words"), str(tmp_path / "out"), SIZE)
    list(write([], rank=0, world_size=2))
    with pytest.raises(RegardError, match="2 of 5 sources are not finished; the first one is b"):
        list(SealCorpus(sources, str(tmp_path / "out"))())


def test_without_datatrove_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "datatrove"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "datatrove", None)
    with pytest.raises(RegardError, match=r"\[cluster\]"):
        list(ReadSources(make_sources(tmp_path))(None))
