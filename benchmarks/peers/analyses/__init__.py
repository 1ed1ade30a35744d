"""The models of ``benchmarks/analyses.py`` in other systems, fitted to the same toys."""
