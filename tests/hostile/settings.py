"""Settings too large for any machine, and TOML bombs, in model.toml and run.toml."""

import json
import os
import shutil

from tests.hostile.attack import attack
from tests.hostile.doors import Place

MODEL, RUN = "model.toml", "run.toml"
DEEP = 100_000


def _set(place: Place, **sizes: int) -> None:
    """Replace the first occurrence of some settings in model.toml."""
    path = place.folder / MODEL
    lines = path.read_text().split("\n")
    for setting, value in sizes.items():
        line_number = next(number for number, line in enumerate(lines) if line.startswith(f"{setting} = "))
        lines[line_number] = f"{setting} = {value}"
    path.write_text("\n".join(lines))
    place.write_manifest()


@attack("read_model", "layers")
def terabytes_asked_for(place: Place) -> None:
    """A width of a billion, a billion layers."""
    _set(place, d_model=10**9, layers=10**9, heads=1)


@attack("read_model", "memory")
def terabytes_within_limits(place: Place) -> None:
    """A model of 100 terabytes in which every single setting is moderate."""
    _set(place, d_model=2**17, layers=500, d_ff=2**19)


@attack("read_model", "parameters")
def gigabytes_without_weights(place: Place) -> None:
    """Settings of a one-gigabyte model with the weights of a small one."""
    _set(place, d_model=4096, layers=1, d_ff=2**15)


@attack("read_model", "heads")
def heads_without_end(place: Place) -> None:
    """A billion heads that are not divisible by seven groups: the hint would list the divisors."""
    place.replace(MODEL, "heads = 4", "heads = 1000000000\nkey_value_heads = 7\nkey_dim = 1")
    place.write_manifest()


@attack("read_model", "memory|positions|length")
def overflowing_product(place: Place) -> None:
    """Sizes that are allowed one by one, and whose product exceeds 64 bits."""
    _set(place, d_model=2**30, d_ff=2**30, length=2**30)


@attack("read_model", "TOML")
def deep_toml(place: Place) -> None:
    """100,000 nested arrays."""
    (place.folder / MODEL).write_text("d_model = " + "[" * DEEP + "]" * DEEP)
    place.write_manifest()


@attack("read_model", "TOML")
def dotted_bomb(place: Place) -> None:
    """One key of 100,000 parts: parsing takes quadratic time."""
    (place.folder / MODEL).write_text(".".join(["a"] * DEEP) + " = 1\n")
    place.write_manifest()


@attack("read_model", "9,000 faults")
def toml_of_faults(place: Place) -> None:
    """9,000 unknown keys: a hint for each takes time, and no user reads them all."""
    text = (place.folder / MODEL).read_text()
    (place.folder / MODEL).write_text("".join(f"d_modle{n} = 1\n" for n in range(9_000)) + text)
    place.write_manifest()


@attack("read_model", "TOML")
def toml_of_keys(place: Place) -> None:
    """100,000 keys in a table."""
    (place.folder / MODEL).write_text("[more]\n" + "".join(f"k{n}=1\n" for n in range(100_000)))
    place.write_manifest()


@attack("read_model", "TOML|many digits|d_model")
def number_without_end(place: Place) -> None:
    """A number of 200,000 hexadecimal digits: Python refuses to format it."""
    place.replace(MODEL, "d_model = 32", "d_model = 0x" + "f" * 200_000)
    place.write_manifest()


@attack("read_model", "TOML")
def decimal_without_end(place: Place) -> None:
    """A number of 200,000 decimal digits: Python refuses to read it."""
    place.replace(MODEL, "d_model = 32", "d_model = " + "9" * 200_000)
    place.write_manifest()


@attack("read_model", "bytes")
def endless_toml(place: Place) -> None:
    """model.toml of 4 GB that is sparse, with a matching manifest."""
    os.truncate(place.folder / MODEL, 4 << 30)
    place.edit("manifest.json", lambda manifest: manifest["files"][MODEL].update(bytes=4 << 30))
    _write_canonical(place)


@attack("read_model", "TOML")
def settings_of_no_text(place: Place) -> None:
    """Bytes that are not UTF-8."""
    (place.folder / MODEL).write_bytes(b"d_model = \xff\xfe\n")
    place.write_manifest()


@attack("read_model", "is missing|fault")
def empty_settings(place: Place) -> None:
    """An empty model.toml."""
    (place.folder / MODEL).write_bytes(b"")
    place.write_manifest()


@attack("resume", "TOML")
def deep_run(place: Place) -> None:
    """run.toml with 100,000 nested tables."""
    (place.folder / RUN).write_text("a = " + "{a=" * DEEP + "1" + "}" * DEEP)


@attack("resume", "TOML")
def dotted_table_bomb(place: Place) -> None:
    """run.toml with a table whose name has 100,000 parts."""
    (place.folder / RUN).write_text("[" + ".".join(["a"] * DEEP) + "]\n")


@attack("resume", "bytes")
def endless_run(place: Place) -> None:
    """run.toml of 16 GB that is sparse."""
    os.truncate(place.folder / RUN, 16 << 30)


@attack("resume", "threads.*less than")
def thread_bomb(place: Place) -> None:
    """A run with a billion threads."""
    place.replace(RUN, "threads = 1", "threads = 1000000000")


@attack("resume", "settings are not those|memory")
def run_of_terabytes(place: Place) -> None:
    """A run whose model takes 100 terabytes, without a checkpoint to compare with."""
    shutil.rmtree(place.folder / "checkpoints")
    place.replace(RUN, "d_model = 16", "d_model = 131072")
    place.replace(RUN, "layers = 1", "layers = 500")
    place.replace(RUN, "d_ff = 16", "d_ff = 524288")


@attack("resume", "no device")
def run_on_a_strange_device(place: Place) -> None:
    """A run, without a checkpoint yet, on the meta device, which stores no values."""
    shutil.rmtree(place.folder / "checkpoints")
    place.replace(RUN, 'name = "cpu"', 'name = "meta"')


def _write_canonical(place: Place) -> None:
    """Write a manifest in Regard's format without reading the files."""
    path = place.folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=1, sort_keys=True) + "\n")
