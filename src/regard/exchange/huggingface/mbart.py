"""MBart: a BART with pre-norm."""

from dataclasses import replace

from regard.exchange.huggingface.bart import BartArchitecture


class MBartArchitecture(BartArchitecture):
    """`MBartForConditionalGeneration`."""

    name, model_type = "MBartForConditionalGeneration", "mbart"
    rules = replace(BartArchitecture.rules, norm_order="pre")


MBART = MBartArchitecture()
