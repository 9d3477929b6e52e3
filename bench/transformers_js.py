"""Write what a language model or a classifier gives for the lines of a file, for `web/bench/transformers.mjs`.

python -m bench.transformers_js MODEL LINES > expected.json
"""

import argparse
import json
import sys
from pathlib import Path

from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.encoding import add_special_tokens
from regard.tasks.load import load
from regard.tasks.search import Beam
from regard.tasks.text_classification import Classifier

NEW_TOKENS, TEXTS = 32, 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("lines", type=Path)
    arguments = parser.parse_args()
    pipeline = load(arguments.model)
    texts = arguments.lines.read_text(encoding="utf-8").splitlines()[:TEXTS]
    examples = []
    for text in texts:
        if isinstance(pipeline, TextGenerator):
            (ids,) = pipeline.encode_prompts([text], NEW_TOKENS)
            # Regard shows the unknown token, transformers.js leaves it out as a special one.
            output: object = pipeline.generate(text, NEW_TOKENS, Beam(1)).text.replace("<unk>", "")
        else:
            assert isinstance(pipeline, Classifier)  # noqa: S101
            tokenizer = pipeline.tokenizers.source
            ids = add_special_tokens(tokenizer, tokenizer.encode_ids([text])[0])
            output = pipeline.classify(text).probabilities
        examples.append({"text": text, "ids": ids, "output": output})
    json.dump(examples, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
