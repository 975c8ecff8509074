"""Compute kernels: CUDA sources and numba kernels for the CPU; knows neither engine nor app."""
