"""Worker processes that run candidates, and the memory and messages that they share with the grader."""
