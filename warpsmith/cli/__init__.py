"""The `warpsmith` command: thin, one module a command group. stdout is data, stderr is for people."""
