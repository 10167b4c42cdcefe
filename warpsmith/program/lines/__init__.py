"""Lines of a program's files that cost time in a step: waits, loops of small operators, copies, recompilations."""
