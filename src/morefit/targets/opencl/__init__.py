"""The OpenCL target: kernels as C for GPUs and other devices."""
