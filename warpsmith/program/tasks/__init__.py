"""What the program's process can be asked to do besides running steps: one module a task.

Each has `main(child: warpsmith.program.process.loaded_program.LoadedProgram, **arguments) -> JSON`.
"""
