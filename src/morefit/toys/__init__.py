"""Studies of many toys: draw them, fit each, and sum up values, errors, pulls and coverage."""
