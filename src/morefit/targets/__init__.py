"""From a kernel to numbers, on one kind of device each."""
