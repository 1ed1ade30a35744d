"""What becomes of a model: its graph, its kernels, and pictures of them."""
