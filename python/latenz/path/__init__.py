"""Where the time of an interrupt went."""
