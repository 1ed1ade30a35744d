"""One file a system: how it draws, builds and fits the two models."""
