"""Tasks of the program's process in addition to running steps, one module for each.

Each has `main(program: LoadedProgram, **arguments) -> JSON`, with arguments from JSON.
"""
