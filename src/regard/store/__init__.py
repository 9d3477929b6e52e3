"""Model folders and run folders: written atomically, verified on reading, without executable code."""
