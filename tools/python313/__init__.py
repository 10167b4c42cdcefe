"""Check with CPython 3.13, which Pyodide's npm package brings as WebAssembly: `make newest`."""
