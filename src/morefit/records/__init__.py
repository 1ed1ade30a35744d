"""Files of results: written completely or not at all, read back with checks."""
