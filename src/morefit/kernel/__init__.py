"""A kernel: what to compute once per parameter set and once per event, as straight lines inside a frame."""
