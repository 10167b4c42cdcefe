"""The claude designer: agents of the plugin in Claude Code sessions."""
