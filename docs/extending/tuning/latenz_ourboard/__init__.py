"""Entries for a board of ours: files of layers, as in Latenz' own catalogue, lie beside this."""
