"""Datasets: named columns with one number per event and optional weights, read from files or objects and checked."""
