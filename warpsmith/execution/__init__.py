"""Other machines that judge: where they are, how the lab and a job get there, and how the outcome comes back."""
