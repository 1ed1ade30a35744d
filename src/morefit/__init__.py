"""Maximum-likelihood fits with densities compiled just in time."""
