"""HIP C++ for AMD's GPUs."""
