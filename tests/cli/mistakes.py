"""Likely mistakes on the command line: the command, and what its error must name besides the mistake itself."""

import gzip
from pathlib import Path

import regard
from regard._api import train
from regard.config.tokenizers import ByteBpeConfig
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair

PAIRS = Path(regard.__file__).parent / "assets" / "demo" / "validation.tsv.gz"


def make_folder(folder: Path) -> None:
    """Write the corpora, models and odd files that the commands name."""
    pairs = [line.split("\t") for line in gzip.decompress(PAIRS.read_bytes()).decode().splitlines()]
    for side, language in enumerate(("en", "de")):
        lines = [pair[side] for pair in pairs]
        (folder / f"train.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (folder / f"short.{language}").write_text("".join(f"{line}\n" for line in lines[:20]), encoding="utf-8")
    (folder / "latin1.de").write_bytes("".join(f"{pair[1]}\n" for pair in pairs).encode("latin-1", "replace"))
    (folder / "utf16.en").write_bytes("".join(f"{pair[0]}\n" for pair in pairs).encode("utf-16"))
    (folder / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    (folder / "empty.txt").touch()
    (folder / "blank.txt").write_text("\n\n\n")
    (folder / "binary.bin").write_bytes(bytes(range(256)) * 40)
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(range(256)) * 40)
    (folder / "notes.json").write_text('{"a": 1}\n')
    (folder / "broken.jsonl").write_text('{"source": "a", "target": "b"}\n{"source": \n')
    (folder / "cut.en.gz").write_bytes(gzip.compress((folder / "train.en").read_bytes())[:-200])
    (folder / "run.toml").write_text("[train]\nupdatse = 5\n")
    (folder / "no-corpus.toml").write_text('[model]\npreset = "tiny"\n')
    (folder / "corpus.toml").write_text(
        '[model]\npreset = "tiny"\n[[data.train]]\nkind = "lines"\nsource = "train.en"\n'
    )
    (folder / "not.toml").write_text("this is = = not toml\n")
    (folder / "full").mkdir()
    (folder / "full" / "important.txt").touch()
    (folder / "empty-folder").mkdir()
    tokenizer = learn([pair[side] for pair in pairs for side in (0, 1)], ByteBpeConfig(vocabulary=300))
    tokenizers = TokenizerPair.joint(tokenizer)
    tokenizer.save(folder / "tokenizer.json")
    small = {"encoder.layers": 1, "decoder.layers": 1}
    for name, preset, changes in (
        ("translator", "mini", {"source.vocabulary": tokenizer.size} | small),
        ("language-model", "lm-small", {"tokens.vocabulary": tokenizer.size, "decoder.layers": 1}),
        ("masked-model", "encoder-small", {"source.vocabulary": tokenizer.size, "encoder.layers": 1}),
        (
            "classifier",
            "encoder-small",
            {
                "source.vocabulary": tokenizer.size,
                "encoder.layers": 1,
                "task": "text_classification",
                "head": {"kind": "classes", "labels": ["yes", "no"]},
            },
        ),
    ):
        settings = regard.preset(preset, changes)
        weights = get_weights(regard.build(settings, seed=1))
        write_model(folder / name, settings, tokenizers, weights, card="An untrained example.")
    damaged = folder / "damaged-model"
    damaged.mkdir()
    for path in (folder / "translator").iterdir():
        (damaged / path.name).write_bytes(path.read_bytes())
    with (damaged / "model.safetensors").open("r+b") as weights_file:
        weights_file.seek(5000)
        weights_file.write(b"\0\1\2\3\4\5\6\7")
    train(
        folder / "train.en",
        folder / "train.de",
        out=folder / "finished-run",
        preset="mini",
        steps=1,
        settings={
            "tokenizer.vocabulary": 300,
            "model.encoder.layers": 1,
            "model.decoder.layers": 1,
            "validation.sentences": 2,
            "train.step_tokens": 512,
            "device.threads": 1,
            "device.logit_rows": 0,
            "device.attention": "autocast",
        },
    )


MISTAKES = [  # command, exit code, and what the error must name
    # Commands and options
    ("trian --source train.en --target train.de --out m", 2, "trian"),
    ("tarnslate translator hello", 2, "tarnslate"),
    ("train --sorce train.en --target train.de --out m", 2, "--sorce"),
    ("train --source train.en --target train.de --output m", 2, "--output"),
    ("train --source train.en --target train.de --out m --epochs 10", 2, "--epochs"),
    ("train --source train.en --target train.de --out m --steps ten", 2, "--steps"),
    ("train --source train.en --target train.de --out m --steps -5", 2, "--steps"),
    ("train --source train.en --target train.de --out m --steps 0", 2, "--steps"),
    ("train --source train.en --target train.de --out m --minutes 0", 2, "--minutes"),
    ("train --source train.en --target train.de --out m --minutes -1", 2, "--minutes"),
    ("train --source train.en --target train.de --out", 2, "--out"),
    ("train", 2, "No training corpus was given."),
    ("train --out m", 2, "No training corpus was given."),
    ("train --source train.en --target train.de", 2, "No output folder was given."),
    ("train --source train.en --out m", 2, "--source"),
    ("train --target train.de --out m", 2, "--target"),
    ("train --source train.en --target train.en --out m", 2, "train.en was given for both sides:"),
    ("train --source train.en --target train.de --text train.en --out m", 2, "--text"),
    ("train --source train.en --target train.de --out m --minutes 3 --steps 10", 2, "--minutes"),
    ("train --source train.en --target train.de --out m --more 10", 2, "--more"),
    ("train --source train.en --target train.de --out m --languages en", 2, "--languages"),
    ("serve", 1, "There is no model to serve."),
    ("serve missing-model", 1, "missing-model"),
    # Files
    ("train --source trian.en --target train.de --out m", 1, "trian.en"),
    ("train --source train.en --target short.de --out m", 1, "short.de"),
    ("train --source train.en --target empty.txt --out m", 1, "empty.txt"),
    ("train --source empty.txt --target empty.txt --out m", 2, "empty.txt was given for both sides:"),
    ("train --text empty.txt --out m", 1, "empty.txt"),
    ("train --text blank.txt --out m", 1, "The text has 2 characters, too few"),
    ("train --text missing.txt --out m", 1, "missing.txt"),
    ("train --text empty-folder --out m", 1, "empty-folder"),
    ("train --text photo.jpg --out m", 1, "photo.jpg"),
    ("train --source binary.bin --target train.de --out m", 1, "binary.bin"),
    ("train --source train.en --target latin1.de --out m", 1, "latin1.de"),
    ("train --source utf16.en --target train.de --out m", 1, "utf16.en"),
    ("train --source cut.en.gz --target train.de --out m", 1, "cut.en.gz"),
    ("train --source full --target train.de --out m", 1, "full"),
    ("train --data notes.json --out m", 1, "1 line is too few to hold some out"),
    ("train --data broken.jsonl --out m", 1, "broken.jsonl"),
    ("train --data missing.tsv --out m", 1, "missing.tsv"),
    ("train --data photo.jpg --out m", 1, "photo.jpg"),
    ("train pairs.tsv", 2, "No output folder was given."),
    ("train train.en train.de pairs.tsv --out m", 2, "one file or two aligned files, got 3"),
    ("train train.de train.en --languages en de --out m", 1, "The languages are swapped"),
    ("train run.toml --out m", 1, "updatse"),
    ("train no-corpus.toml --out m", 1, "no-corpus.toml"),
    ("train not.toml --out m", 1, "not.toml"),
    ("train missing.toml --out m", 1, "missing.toml"),
    ("train finished-run --out m", 1, "finished-run"),
    ("train translator --out m", 1, "translator"),
    # Settings
    ("train --source train.en --target train.de --out m --preset tinny", 1, "tinny"),
    ("train --source train.en --target train.de --out m --preset gpt2", 1, "gpt2"),
    ("train --source train.en --target train.de --out m --set train.learning_rate=0.1", 1, "train.learning_rate:"),
    ("train --source train.en --target train.de --out m --set train.updatse=5", 1, "train.updatse:"),
    ("train --source train.en --target train.de --out m --set train.max_grad_norm", 2, "--set"),
    ("train --source train.en --target train.de --out m --set train.max_grad_norm=high", 1, "train.max_grad_norm:"),
    (
        "train --source train.en --target train.de --out m --set model.encoder.attention.heads=3",
        1,
        "model.encoder.attention.heads:",
    ),
    ("train --source train.en --target train.de --out m --set device.name=cuda:7", 1, "device.name"),
    ("train --source train.en --target train.de --out m --set model.preset=tiny", 2, "--set"),
    ("train --source train.en --target train.de --out m --track tensorbord", 1, "tensorbord"),
    ("train --source train.en --target train.de --out m --track wandb", 1, "wandb"),
    # Output
    ("train --source train.en --target train.de --out full", 1, "full"),
    ("train --source train.en --target train.de --out train.en", 1, "train.en"),
    ("train --source train.en --target train.de --out train.en/m", 1, "train.en"),
    ("train --source train.en --target train.de --out finished-run", 1, "finished-run"),
    ("train --source train.en --target train.de --out /proc/m", 1, "/proc/m"),
    ("train --resume missing", 1, "missing"),
    ("train --resume translator", 1, "translator"),
    ("train --resume empty-folder", 1, "empty-folder"),
    ("train --resume finished-run", 1, "finished-run"),
    ("train --resume finished-run --source train.en", 2, "--resume"),
    ("train --resume finished-run --more 1 --set train.max_grad_norm=0.5", 1, "finished-run/run.toml"),
    ("train --resume finished-run --more 1 --set data.seed=2", 1, "finished-run/run.toml"),
    ("train --resume finished-run --accept data", 2, "--accept"),
    ("train --resume train.en", 1, "train.en"),
    # Using a model
    ("translate", 2, "MODEL"),
    ("translate missing-model hello", 1, "missing-model"),
    ("translate train.en hello", 1, "train.en"),
    ("translate empty-folder hello", 1, "empty-folder"),
    ("translate full hello", 1, "full"),
    ("translate damaged-model hello", 1, "damaged-model"),
    ("translate language-model hello", 1, "language-model"),
    ("translate classifier hello", 1, "classifier"),
    ("translate tiny hello", 1, "tiny"),
    ("translate translator --input missing.txt", 1, "missing.txt"),
    ("translate translator --input full", 1, "full"),
    ("translate translator --input photo.jpg", 1, "photo.jpg"),
    ("translate translator --input latin1.de", 1, "latin1.de"),
    ("translate translator hello --input train.en", 1, "--input"),
    ("translate translator --input short.en --output short.en", 1, "short.en"),
    ("translate translator --input short.en --output missing/out.de", 1, "missing/out.de"),
    ("translate translator --input short.en --output /proc/out.de", 1, "/proc/out.de"),
    ("translate translator hello --beam 0", 2, "--beam"),
    ("translate translator hello --beam five", 2, "--beam"),
    ("translate translator hello --search bean", 2, "--search"),
    ("translate translator hello --temperature 0.5", 1, "--temperature"),
    ("translate translator hello --target-language fr", 1, "fr"),
    ("translate translator hello --align", 1, "--align"),
    ("translate translator hello --ensemble language-model", 1, "language-model"),
    ("generate translator ROMEO", 1, "translator"),
    ("generate language-model ROMEO --top-p 2", 2, "--top-p"),
    ("generate language-model ROMEO --temperature -1", 2, "--temperature"),
    ("generate language-model ROMEO --max-new-tokens 0", 2, "--max-new-tokens"),
    ("generate language-model ROMEO --draft translator", 1, "translator"),
    ("predict translator 'Where is Tom?'", 1, "regard translate"),
    ("predict masked-model 'The dog barks.'", 1, "The dog barks."),
    ("predict classifier text --beam 2", 1, "--beam"),
    ("predict classifier text --pair missing.txt", 1, "missing.txt"),
    ("evaluate translator --score 'Zwei Hunde.'", 1, "translator"),
    ("evaluate translator --score --reference train.de --source short.en", 1, "--source has"),
    # Measuring
    ("evaluate", 1, "No model or output file was given."),
    ("evaluate translator", 1, "There are no references."),
    ("evaluate translator --source train.en", 1, "There are no references."),
    ("evaluate translator --source train.en --reference missing.de", 1, "missing.de"),
    ("evaluate translator --source train.en --reference short.de", 1, "--source"),
    ("evaluate translator --reference train.de", 1, "There are no source texts."),
    ("evaluate language-model --source train.en --reference train.de", 1, "language-model"),
    ("evaluate translator --source train.en --reference train.de --columns 1,2", 1, "--columns needs --data."),
    ("evaluate translator --data pairs.tsv --columns 1,7", 1, "There is no column 7"),
    ("train pairs.tsv --columns 1,x=2 --out m", 1, "does not name columns"),
    ("check pairs.tsv --columns 1,7", 1, "There is no column 7"),
    ("evaluate --hypotheses train.de", 1, "There are no references."),
    ("evaluate --hypotheses short.de --reference train.de", 1, "--hypotheses"),
    ("evaluate missing-model --source train.en --reference train.de", 1, "missing-model"),
    ("evaluate translator --text train.en --source train.en", 1, "--text"),
    # Data, tokenizer, models, settings
    ("check", 1, "No corpus was given."),
    ("check missing.en missing.de", 1, "missing.en"),
    ("check train.en short.de", 1, "short.de"),
    ("check photo.jpg", 1, "photo.jpg"),
    ("check train.en train.de --write full", 1, "full"),
    ("check train.en train.de --remove nonsense", 1, "nonsense"),
    ("check train.en train.de --lingua", 1, "--lingua"),
    ("tokenizer learn", 2, "FILE"),
    ("tokenizer learn missing.txt", 1, "missing.txt"),
    ("tokenizer learn empty.txt --out t.json", 1, "There is no text to learn from."),
    ("tokenizer learn train.en --kind wordpiece --out t.json", 1, "--kind"),
    ("tokenizer learn train.en --vocabulary 3 --out t.json", 1, "A vocabulary of 3 is too small for"),
    ("tokenizer learn train.en --out full", 1, "full"),
    ("tokenizer show missing.json text", 1, "missing.json"),
    ("tokenizer show notes.json text", 1, "notes.json"),
    ("tokenizer check tokenizer.json missing.txt", 1, "missing.txt"),
    ("model show tinny", 1, "tinny"),
    ("model cost tiny --set encoder.layres=2", 1, "encoder.layres"),
    ("model show photo.jpg", 1, "photo.jpg"),
    ("model settings train.schedul", 1, "train.schedul"),
    ("prepare missing.toml shards --tokenizer .", 1, "missing.toml"),
    ("prepare no-corpus.toml shards --tokenizer .", 1, "no-corpus.toml"),
    ("prepare no-corpus.toml shards", 1, "data.train"),
    ("prepare corpus.toml shards", 1, "--tokenizer is missing"),
    ("demo --out full", 1, "full"),
    ("demo --out train.en", 1, "train.en"),
    ("demo --steps 0", 2, "--steps"),
    ("info --jsn", 2, "--jsn"),
]
