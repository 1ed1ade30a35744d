"""The LLVM target: kernels as vector code for the cores of this machine."""
