"""The paper's two tables for morefit and its peers, each in an environment of its own: start at run.py."""
