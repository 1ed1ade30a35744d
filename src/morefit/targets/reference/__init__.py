"""The reference target: kernels evaluated line by line with numpy; all others are tested against it."""
