"""Text for people: tables, rounding, progress."""
