"""Text for users: tables, HTML, LaTeX, rounding, suggestions, progress."""
