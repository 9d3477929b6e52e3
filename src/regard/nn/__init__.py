"""VECTORS -> VECTORS: the one core that all three families share.

Parts take plain values, never the configuration, so each can be used alone. The shape stands on the line
that changes it, in these letters:

    B rows of a batch          D width of the model (d_model)
    T tokens that ask          H heads that ask
    S tokens that are asked    G heads that are asked (G = H: MHA, G < H: GQA, G = 1: MQA)
    K size of a key (d_k)      V size of a value (d_v)
"""
