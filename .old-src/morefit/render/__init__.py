"""From kernels to text for one kind of target each."""
