"""The model card of an exported folder: front matter for the Hugging Face Hub, usage, and the card of the model."""

import json
import re
from collections.abc import Sequence

from regard.base.version import __version__
from regard.config.model import AnyModelConfig, DecoderOnlyConfig, EncoderDecoderConfig
from regard.exchange.huggingface.architectures import AnyArchitecture
from regard.text.tokenizer_pair import TokenizerPair

_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")

USAGE = "## Use with transformers"
TRANSLATE = """
model = {auto_class}.from_pretrained(folder)
{target}batch = tokenizer([{example}], return_tensors="pt")
print({target_name}.batch_decode(model.generate(**batch), skip_special_tokens=True))
"""
CONTINUE = """
model = {auto_class}.from_pretrained(folder)
batch = tokenizer("Once upon a time", return_tensors="pt")
print(tokenizer.decode(model.generate(**batch)[0], skip_special_tokens=True))
"""
ENCODE = """
model = {auto_class}.from_pretrained(folder{arguments})
batch = tokenizer("A sentence.", return_tensors="pt")
print(model(**batch)[0].shape)
"""


def make_card(
    settings: AnyModelConfig,
    architecture: AnyArchitecture,
    tokenizers: TokenizerPair,
    card: str,
    license_name: str | None,
    notes: Sequence[str],
) -> str:
    """Return the text of README.md.

    Args:
        settings: The model's settings.
        architecture: The exported architecture.
        tokenizers: The model's tokenizers.
        card: The model card of the Regard folder.
        license_name: The license, as the hub spells it.
        notes: Differences from the model in Regard.
    """
    lines = ["---", *_make_front_matter(settings, architecture, license_name), "---", ""]
    lines += [_remove_additions(card).strip(), "", USAGE, "", "```python"]
    tokenizer_class = "PreTrainedTokenizerFast" if architecture.has_own_tokenizer else "AutoTokenizer"
    lines += [f"from transformers import {architecture.auto_class}, {tokenizer_class}", ""]
    lines += [
        'folder = "."  # this folder, or its name on the hub',
        f"tokenizer = {tokenizer_class}.from_pretrained(folder)",
    ]
    lines += [_make_usage(settings, architecture, tokenizers).strip(), "```", ""]
    lines += [f"Exported by Regard {__version__} as `{architecture.name}`: it needs no remote code.", ""]
    lines += [*(f"- {note}" for note in notes), ""]
    return "\n".join(lines)


def _make_front_matter(settings: AnyModelConfig, architecture: AnyArchitecture, license_name: str | None) -> list[str]:
    codes = [language for language in settings.languages if _LANGUAGE_CODE.fullmatch(language)]
    lines = ["language:", *(f"- {json.dumps(code)}" for code in dict.fromkeys(codes))] if codes else []
    if license_name is not None:
        lines.append(f"license: {json.dumps(license_name)}")
    tag = architecture.pipeline_tag
    return [*lines, "library_name: transformers", f"pipeline_tag: {tag}", "tags:", "- regard", f"- {tag}"]


def _remove_additions(card: str) -> str:
    """Remove front matter and usage that an earlier export added to the card."""
    if card.startswith("---\n"):
        card = card[4:].partition("\n---\n")[2]
    return card.partition(f"\n{USAGE}\n")[0]


def _make_usage(settings: AnyModelConfig, architecture: AnyArchitecture, tokenizers: TokenizerPair) -> str:
    if isinstance(settings, EncoderDecoderConfig):
        tag = next((f"<2{language}> " for language in tokenizers.source.specials.languages), "")
        is_joint = tokenizers.is_joint
        target = "" if is_joint else 'target = AutoTokenizer.from_pretrained(folder, subfolder="target")\n'
        return TRANSLATE.format(
            auto_class=architecture.auto_class,
            example=json.dumps(f"{tag}A sentence."),
            target=target,
            target_name="tokenizer" if is_joint else "target",
        )
    if isinstance(settings, DecoderOnlyConfig):
        return CONTINUE.format(auto_class=architecture.auto_class)
    arguments = "".join(f", {name}={value}" for name, value in architecture.load_arguments.items())
    return ENCODE.format(auto_class=architecture.auto_class, arguments=arguments)
