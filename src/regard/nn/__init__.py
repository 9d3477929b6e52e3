"""Neural network modules shared by all three model families.

Modules take plain values, never the configuration, so each can be used alone. Comments give tensor shapes on the line
that changes them, with these letters:

    B batch size               D width of the model (d_model)
    T query tokens             H query heads
    S key and value tokens     G key and value heads (G = H: MHA, G < H: GQA, G = 1: MQA)
    K size of a key (d_k)      V size of a value (d_v)
"""
