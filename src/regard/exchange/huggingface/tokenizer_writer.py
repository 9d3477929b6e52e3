"""Tokenizer files for Hugging Face: `tokenizer.json` with a template, and `tokenizer_config.json`.

Our `tokenizer.json` inserts no special tokens, because Regard adds them itself. The exported file has a template that
inserts them: eos after a source, bos before a prompt, cls and sep around the text of an encoder.

In `transformers`, "<pad>" inside a text would become the special token. `split_special_tokens` switches that off, so
texts give the same ids as in Regard; with a chat template it stays on, because the template writes special tokens by
their names. Language tags must remain readable there, because the user writes them before
the source: they are exported as ordinary added tokens.
"""

import copy
import json
from typing import Any

from regard.config.model import AnyModelConfig, DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig
from regard.config.parts import attention_stack
from regard.text.specials import LANGUAGE_PREFIX, ROLES
from regard.text.tokenizer import Tokenizer

TOKENIZER_FILE, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
Document = dict[str, Any]


def make_tokenizer_json(tokenizer: Tokenizer, settings: AnyModelConfig) -> bytes:
    """Return `tokenizer.json` with the template of the model's family."""
    document = copy.deepcopy(tokenizer.document)
    _fill_template(document["post_processor"], settings)
    tags = {
        token
        for name, entry in document["post_processor"]["special_tokens"].items()
        if name.startswith(LANGUAGE_PREFIX)
        for token in entry["tokens"]
    }
    for token in document["added_tokens"]:
        if token["content"] in tags:
            token |= {"special": False, "rstrip": True}  # "<2de> Hello" has no space before "Hello"
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()


def _fill_template(post_processor: Document, settings: AnyModelConfig) -> None:
    """Fill the parts `single` and `pair`.

    They name special tokens by their text. Our table `special_tokens` names them by role, which `tokenizers` also
    accepts, but transformers.js takes the name for the text.
    """
    match settings:
        case EncoderDecoderConfig():
            single, pair = "A eos", "A B eos"
        case DecoderOnlyConfig():
            single, pair = ("bos A", "bos A B") if settings.starts_with_bos else ("A", "A B")
        case _:
            single, pair = "cls A sep", "cls A sep B sep"
            if settings.has_pair_types:
                pair = "cls A sep B:1 sep:1"  # the token type after the colon
    table = post_processor["special_tokens"]
    for name, template in (("single", single), ("pair", pair)):
        post_processor[name] = []
        for part in template.split():
            role, _, token_type = part.partition(":")
            is_text = role in ("A", "B")
            text = role if is_text else table[role]["tokens"][0]
            kind = "Sequence" if is_text else "SpecialToken"
            post_processor[name].append({kind: {"id": text, "type_id": int(token_type or 0)}})
            if not is_text:
                table = table | {text: table[role] | {"id": text}}
    post_processor["special_tokens"] = table


def make_tokenizer_config(
    tokenizer: Tokenizer, settings: AnyModelConfig, max_positions: int, *, has_chat_template: bool = False
) -> Document:
    """Return `tokenizer_config.json`: the class, the special tokens by role, and the maximum length."""
    names = tokenizer.vocabulary
    is_esm = (
        isinstance(settings, EncoderOnlyConfig) and attention_stack(settings.encoder).position.kind == "rotary"
    )  # without token types
    reads_types = isinstance(settings, EncoderOnlyConfig) and settings.has_pair_types and not is_esm
    roles = {f"{role}_token": names[getattr(tokenizer.specials, role)] for role in ROLES}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **roles,
        "model_max_length": max_positions,
        "model_input_names": ["input_ids", *(["token_type_ids"] if reads_types else []), "attention_mask"],
        "padding_side": "left" if isinstance(settings, DecoderOnlyConfig) else "right",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": not has_chat_template,
        # transformers.js continues a text without the template, unless the file says that it inserts bos.
        **({"add_bos_token": True} if isinstance(settings, DecoderOnlyConfig) and settings.starts_with_bos else {}),
    }
