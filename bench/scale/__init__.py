"""How cost grows with corpus size, shards, ranks and clients: one command per measurement."""
