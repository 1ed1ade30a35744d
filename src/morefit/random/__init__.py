"""Random numbers: the counted generator, the streams, and generators of the host."""
