"""Search over the configurations that a version declares."""
