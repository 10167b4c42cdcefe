// Runs check.py in Pyodide's CPython: `node run.mjs PYODIDE SITE_PACKAGES`, with the folders of both.
import { dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [pyodide, packages] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(resolve(pyodide, "pyodide.mjs")));
const python = await loadPyodide();
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
for (const [name, folder] of [["/repository", root], ["/packages", resolve(packages)]]) {
  python.FS.mkdirTree(name);
  python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, name);
}
process.exit(python.runPython(`
import sys
sys.path[:0] = ["/repository", "/packages"]
from tools.python313 import check
check.main()
`));
