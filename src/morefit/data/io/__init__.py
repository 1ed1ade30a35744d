"""Columns of numbers in files and histograms; the only package that imports uproot, pyarrow and hist."""
