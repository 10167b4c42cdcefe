"""The search over the configurations that a version declares."""
