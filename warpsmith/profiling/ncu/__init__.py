"""Reports of NVIDIA Nsight Compute."""
