"""The cost of looking into a model: recording, statistics, and a recorded beam search.

    python -m bench.look             # the figures of docs/guides/look.md; about three minutes
    python -m bench.look --quick     # fewer layers and tokens, half a minute: shows that it runs

One thread, CPU time, contestants in turns. A GPT-2 shape has 12 layers of 12 heads, 768 wide, and reads 2,048 tokens;
its weights are random, which does not change the cost. The last line is JSON with all ratios.
"""

import argparse
import json
import time
from dataclasses import replace

import torch
from tests.tasks.factories import make_tokenizer, make_tokenizers
from torch import Tensor

from bench.timing import format_table, race, ratio, restart_with_tuned_malloc
from regard.base.blobs import Blob
from regard.config import codec
from regard.look.attention import make_groups
from regard.look.document import Token
from regard.look.record import LookRecord
from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.kv_cache import DecodingState
from regard.nn.record import Record
from regard.tasks.replay import ReplayInput
from regard.tasks.requests import ReplayOptions
from regard.tasks.search import Beam, make_generator
from regard.tasks.translation.translator import Translator

SENTENCE = "Two young men are outside near many bushes and a little girl climbs into a wooden playhouse."


def make_translator() -> Translator:
    """Return an untrained translator of preset `small`'s shape with a small vocabulary."""
    settings = codec.preset("tiny", {"source.vocabulary": make_tokenizer().size})
    model = build(settings, seed=1)
    assert isinstance(model, EncoderDecoder)  # noqa: S101
    return Translator(model.eval(), make_tokenizers(), settings)


def bench_sentence(seconds: float) -> dict[str, float]:
    """Compare one forward pass of a sentence with and without a record."""
    translator = make_translator()
    (source,) = translator.encode_sources([SENTENCE], None)
    passage = ReplayInput(translator.model, source, [1, *source], range(len(source)), source)
    steps = {
        "off": lambda: passage.replay(),
        "Record": lambda: passage.replay(Record()),
        "LookRecord": lambda: passage.replay(LookRecord()),
    }
    times = race(steps, seconds=seconds)
    print(f"One sentence, {len(source)} + {len(source) + 1} tokens\n{format_table(times, ours='off')}\n")
    return {"sentence": ratio(times["LookRecord"], times["off"])}


def bench_long(seconds: float, layers: int, tokens: int) -> dict[str, float]:
    """Compare a GPT-2 shape with and without a record, and time statistics and thumbnails."""
    changes = {"decoder.layers": layers, "decoder.position.length": tokens, "tokens.vocabulary": 1000}
    model = build(codec.preset("gpt2", changes), seed=1)
    assert isinstance(model, DecoderOnly)  # noqa: S101
    ids = torch.randint(0, 1000, (tokens,), generator=torch.Generator().manual_seed(1)).tolist()
    passage = ReplayInput(model.eval(), target=ids, rows=[tokens - 1], labels=[0])
    record, half = LookRecord(), LookRecord(half=True)
    steps = {
        "off": lambda: passage.replay(),
        "LookRecord": lambda: passage.replay(record),
        "half": lambda: passage.replay(half),
    }
    times = race(steps, seconds=seconds, warm_up=1)
    print(f"{tokens} tokens, {layers} x 12 heads, 768 wide\n{format_table(times, ours='off')}")
    print(f"kept: {record.bytes / 1e6:.0f} MB, in half precision {half.bytes / 1e6:.0f} MB")
    target = [Token(id=token, text="x", role="text", word=0) for token in ids]
    cpu: list[float] = []
    for _ in range(3):
        blobs: dict[str, Blob] = {}
        start = time.process_time()
        make_groups(record, {"target": target}, blobs, max_cells=0)
        cpu.append(time.process_time() - start)
    start = time.process_time()
    make_groups(record, {"target": target}, {}, max_cells=tokens * tokens)
    print(f"statistics and thumbnails: {min(cpu):.2f} CPU-s; and one map: {time.process_time() - start:.2f} CPU-s\n")
    return {
        "long": ratio(times["LookRecord"], times["off"]),
        "long_half": ratio(times["half"], times["off"]),
        "statistics_seconds": min(cpu),
        "megabytes": record.bytes / 1e6,
        "megabytes_half": half.bytes / 1e6,
    }


def bench_search(seconds: float) -> dict[str, float]:
    """Compare a beam search over `model.step` with a recorded one: traced on the fast path, then replayed."""
    translator = make_translator()
    (source,) = translator.encode_sources([SENTENCE], None)
    options = ReplayOptions(Beam(4), max_new_tokens=30)

    def plain_step(tokens: Tensor, state: DecodingState) -> Tensor:
        return translator.model.step(tokens, state)

    def search_plainly() -> None:
        with translator.prepared(), torch.inference_mode():
            inputs = translator.make_search_input([source], [30], make_generator(0, translator.device))
            Beam(4).find(replace(inputs, step=plain_step))

    def search_fast() -> None:
        with translator.prepared(), torch.inference_mode():
            inputs = translator.make_search_input([source], [30], make_generator(0, translator.device))
            Beam(4).find(inputs)

    def search_recorded() -> None:
        translator.replay(SENTENCE, options).input.replay(LookRecord())

    times = race({"model.step": search_plainly, "fast path": search_fast, "recorded": search_recorded}, seconds=seconds)
    print(f"Beam 4, 30 tokens\n{format_table(times, ours='model.step')}\n")
    return {
        "search": ratio(times["recorded"], times["model.step"]),
        "search_fast_path": ratio(times["recorded"], times["fast path"]),
    }


def main() -> None:
    restart_with_tuned_malloc()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer layers and tokens")
    is_quick = parser.parse_args().quick
    torch.set_num_threads(1)
    seconds = 5.0 if is_quick else 30.0
    results = bench_sentence(seconds) | bench_search(seconds)
    results |= bench_long(seconds if is_quick else 90.0, 2 if is_quick else 12, 512 if is_quick else 2048)
    print(json.dumps({name: round(value, 3) for name, value in results.items()}))


if __name__ == "__main__":
    main()
