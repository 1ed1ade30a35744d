"""Draw events of a model: by quantiles, by components, by accept and reject under an envelope."""
