"""Neighbours: likelihoods in the shapes that other packages expect."""
