"""Records of results: types of their fields, JSON, frames of pandas, and files that are complete or not at all."""
