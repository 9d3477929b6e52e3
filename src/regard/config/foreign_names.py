"""Settings of other tools (Hugging Face, fairseq, JoeyNMT, nanoGPT, Lightning) and what replaces them here."""

_STEPS, _STEP_TOKENS = ("train.steps", "train.minutes"), ("train.step_tokens",)
_PEAK, _WARMUP, _CLIP = ("train.schedule.lr",), ("train.schedule.warmup",), ("train.max_grad_norm",)
_LAYERS = ("model.encoder.layers", "model.decoder.layers")
_HEADS = ("model.encoder.attention.heads", "model.decoder.attention.heads")
_HIDDEN = ("model.encoder.feedforward.d_ff", "model.decoder.feedforward.d_ff")
REPLACEMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("epochs", "num_epochs", "num_train_epochs", "max_epochs", "max_epoch"), _STEPS),
    **dict.fromkeys(("max_steps", "max_iters", "max_update", "train_steps", "num_steps"), _STEPS),
    **dict.fromkeys(("batch_size", "train_batch_size", "per_device_train_batch_size"), _STEP_TOKENS),
    **dict.fromkeys(("gradient_accumulation_steps", "accumulate_grad_batches", "update_freq"), _STEP_TOKENS),
    "max_tokens": ("data.batch_tokens",),
    **dict.fromkeys(("learning_rate", "lr", "max_lr", "peak_lr"), _PEAK),
    **dict.fromkeys(("warmup_steps", "warmup_updates", "warmup_iters", "num_warmup_steps"), _WARMUP),
    **dict.fromkeys(("lr_scheduler", "lr_scheduler_type", "scheduling", "scheduler"), ("train.schedule.kind",)),
    **dict.fromkeys(("max_grad_norm", "clip_norm", "grad_clip", "gradient_clip_val", "clip_grad_norm"), _CLIP),
    **dict.fromkeys(("fp16", "bf16", "mixed_precision", "amp"), ("train.precision",)),
    **dict.fromkeys(("save_steps", "save_interval", "checkpoint_interval"), ("train.save_every",)),
    **dict.fromkeys(("save_total_limit", "keep_best_ckpts"), ("train.keep_checkpoints",)),
    **dict.fromkeys(
        ("eval_steps", "eval_interval", "validation_freq", "val_check_interval"), ("validation.every_steps",)
    ),
    "early_stopping_patience": ("validation.patience",),
    **dict.fromkeys(("num_beams", "beam"), ("distillation.beam_size",)),
    **dict.fromkeys(("max_seq_length", "max_seq_len", "block_size"), ("data.max_length",)),
    **dict.fromkeys(("vocab_size", "voc_limit"), ("tokenizer.vocabulary",)),
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "embed_dim", "model_dim"), ("model.d_model",)),
    **dict.fromkeys(("num_layers", "n_layer", "n_layers", "num_hidden_layers"), _LAYERS),
    **dict.fromkeys(("num_heads", "n_head", "n_heads", "num_attention_heads"), _HEADS),
    **dict.fromkeys(("ff_size", "ffn_dim", "d_ff", "dim_feedforward", "intermediate_size"), _HIDDEN),
}
