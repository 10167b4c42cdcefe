"""Station: the end of a connection on the other machine. It keeps the lab there, runs jobs, hands outcomes over.

The text of this file travels with every connection and needs nothing but Python's own library. It reads a line of
JSON and a payload from stdin, and writes events to stdout: one line of JSON each, one of them followed by bytes.

A job runs apart from the connection, watched by a supervisor that holds a lock. Whoever asks for it renews its
lease; the supervisor ends the job, and all that it started, once nobody has for the time of grace. Only that
machine's own monotonic clock counts.

In an allocation of Slurm the station is a step, which Slurm ends with all that it started. So the supervisor stays
its child, and the station outlives its connection until the supervisor has ended. Another station, the batch
script, keeps the allocation as long as a lock shows that there are steps, and for `idle` seconds after the last.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import io
import json
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # an older Python must get as far as saying that it is older
    Json = dict[str, Any]

OLDEST = (3, 11)
"""Oldest Python that the lab runs on."""

MARK = b"warpsmith:"
"""Beginning of each event, so that a greeting of the other shell is not taken for one."""

OWN = ".warpsmith-station"
"""Folder inside the user's folder that holds all that is kept here; nothing outside of it is touched."""

LABS_TO_KEEP = 3
"""Copies of the lab that stay, the last ones that were used."""

IDLE_SECONDS = 86400.0
"""Age after which the folder of a job that nobody fetched is removed."""

_POLL_SECONDS = 0.03
_TERM_SECONDS, _KILL_SECONDS = 5.0, 10.0
_FINISHED, _CANCELLED = "exit 0", "cancelled"
_DESCRIPTORS = 64
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LAB_NAME, _JOB_NAME = re.compile("[0-9a-f]{64}"), re.compile("[0-9a-f]{24}")
_KEEP_SECONDS, _TRANSFER_SECONDS = 5.0, 900.0
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CANCEL, _DONE = b"c", b"d"


def main() -> None:
    """Serve one request of the connection."""
    os.umask(0o077)
    request = json.loads(sys.stdin.buffer.readline())
    payload = sys.stdin.buffer.read(request["payload"])
    if sys.version_info < OLDEST:
        _send({"event": "error", "kind": "python", "message": sys.version.split()[0]})
        return
    root = Path(request["workdir"]).expanduser()
    if request["action"] == "keep":
        _keep_allocation(root, request["idle"])
        return
    try:
        root.mkdir(parents=True, exist_ok=True)
        if request["action"] == "probe":
            _probe(root, request)
            return
        own = _own_folder(root)
        with _outlived_connection(own) if request.get("step") else contextlib.nullcontext():
            {"lab": _receive_lab, "run": _run}[request["action"]](own, request, payload)
    except OSError as error:
        kind = "full" if error.errno in _FULL else "files"
        _send({"event": "error", "kind": kind, "message": f"{error.filename or root}: {error.strerror or error}"})


def _send(event: Json, payload: bytes = b"") -> None:
    sys.stdout.buffer.write(MARK + json.dumps(event).encode() + b"\n" + payload)
    sys.stdout.buffer.flush()


def _keep_allocation(root: Path, idle: float) -> None:
    """Wait until no step has used the allocation for a time in seconds; a full disk is for the steps to say."""
    last = time.monotonic()
    while time.monotonic() - last < idle:
        with contextlib.suppress(OSError):
            root.mkdir(parents=True, exist_ok=True)
            lock = _open_use(_own_folder(root))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                last = time.monotonic()
            finally:
                os.close(lock)
        time.sleep(min(_KEEP_SECONDS, idle / 4))
    with contextlib.suppress(OSError):
        _use_path(root / OWN).unlink()


@contextlib.contextmanager
def _outlived_connection(own: Path) -> Iterator[None]:
    """Show that the allocation is in use, and stay until the supervisor has ended, if one was started.

    A client that is killed leaves no end of input behind, so silence ends the conversation too.
    """
    use = _open_use(own)
    fcntl.flock(use, fcntl.LOCK_SH)
    signal.signal(signal.SIGALRM, _end_conversation)
    signal.setitimer(signal.ITIMER_REAL, _TRANSFER_SECONDS)
    try:
        yield
    except _Silence:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
        os.close(use)


class _Silence(Exception):
    """The client says nothing any more."""


def _end_conversation(*_: object) -> None:
    raise _Silence


def _open_use(own: Path) -> int:
    return os.open(_use_path(own), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)


def _use_path(own: Path) -> Path:
    """Return the file of which the steps of this allocation hold a lock."""
    return own / f"allocation-{os.environ.get('SLURM_JOB_ID', 0)}"


def _own_folder(root: Path) -> Path:
    """Return the station's own folder, with one for labs and one for jobs; only this user may open it."""
    own = root / OWN
    for folder in (own, own / "labs", own / "jobs"):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        _require_private(folder)
    return own


def _require_private(folder: Path) -> None:
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o077:
        raise OSError(errno.EPERM, "it must be a real folder that you own and nobody else can open", str(folder))


def _folders(parent: Path, name: re.Pattern[str]) -> list[Path]:
    """List the real folders with a name that only the station gives."""
    return [
        Path(entry)
        for entry in os.scandir(parent)
        if name.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
    ]


def _probe(root: Path, request: Json) -> None:
    """Say what is there, without changing anything but the folder itself."""
    own = root / OWN
    if os.path.lexists(own):
        _require_private(own)
    query = "import importlib.metadata as m, json, sys\nfound = {}\nfor name in json.loads(sys.argv[1]):\n"
    query += "    try: found[name] = m.version(name)\n    except m.PackageNotFoundError: found[name] = None\n"
    query += "print(json.dumps(found))"
    command = [sys.executable, "-P", "-c", query, json.dumps(request["packages"])]
    versions = subprocess.run(command, capture_output=True, check=False).stdout
    event = {
        "event": "probe",
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "workdir": str(root),
        "host": os.uname().nodename,
        "time": time.time(),
        "free": shutil.disk_usage(root).free,
        "writable": os.access(own if own.exists() else root, os.W_OK | os.X_OK),
        "lab": _lab_sha256(_lab_folder(own, request), bytecode=False) == request["lab"],
        "packages": json.loads(versions or b"{}"),
    }
    _send(event)


def _lab_folder(own: Path, request: Json) -> Path:
    """Return the folder of a lab with the bytecode of this Python; each Python has a copy of its own."""
    identity = f"{request['lab']} {sys.executable} {sys.version}"
    return own / "labs" / hashlib.sha256(identity.encode()).hexdigest()


def _lab_sha256(folder: Path, *, bytecode: bool = True) -> str:
    """Return the hash over all of a copy's files; bytecode counts, too, where Python is to run it."""
    total = hashlib.sha256()
    paths = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    for name, path in sorted(paths.items()):
        if not bytecode and path.parent.name == "__pycache__":
            continue
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


@contextlib.contextmanager
def _alone(own: Path) -> Iterator[None]:
    """Hold the one lock under which folders appear, vanish and are looked up."""
    lock = os.open(own / "lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)  # a process that was forked meanwhile has it too
        os.close(lock)


def _receive_lab(own: Path, request: Json, payload: bytes) -> None:
    """Put a copy of the lab in place, compiled, if it is the one that was announced; a whole one stays.

    The answer has the hash of the compiled copy. Who brought it keeps that, and asks for it at each job.
    """
    folder = _lab_folder(own, request)
    with _alone(own):
        arriving = _unpack(own / "arriving", payload)
        if _lab_sha256(arriving) != request["lab"]:
            shutil.rmtree(arriving, ignore_errors=True)
            _send({"event": "error", "kind": "damaged", "message": "the lab did not arrive as it was sent"})
            return
        _compile(arriving, folder)
        compiled = _lab_sha256(arriving)
        if _lab_sha256(folder) == compiled:
            shutil.rmtree(arriving, ignore_errors=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            arriving.rename(folder)
        os.utime(folder)
        labs = sorted(_folders(folder.parent, _LAB_NAME), key=lambda path: path.stat().st_mtime, reverse=True)
        jobs = [job for job in _folders(own / "jobs", _JOB_NAME) if _is_supervised(job)]
        used = {(job / "lab").read_text() for job in jobs}
        for old in labs[LABS_TO_KEEP:]:
            if old.name not in used:
                shutil.rmtree(old, ignore_errors=True)
    _send({"event": "lab", "compiled": compiled})


def _compile(arriving: Path, folder: Path) -> None:
    """Compile the modules of a copy that will lie in `folder`: two copies have the same bytecode.

    A job writes none, since that would change the copy; without this it would compile all that it imports, which
    takes a second. A module that does not compile is left as it is.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-P", "-s", "-m", "compileall", "-qq", "--invalidation-mode", "unchecked-hash"]
    subprocess.run(
        [*command, "-s", str(arriving), "-p", str(folder), str(arriving)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**environment, "PYTHONHASHSEED": "0"},
        check=False,
    )


def _unpack(arriving: Path, data: bytes) -> Path:
    """Unpack an archive into a new folder, in place of what a killed process left; on failure nothing stays."""
    shutil.rmtree(arriving, ignore_errors=True)
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                path = (arriving / member.name).resolve()
                if not member.isfile() or not path.is_relative_to(arriving.resolve()):
                    raise OSError(errno.EINVAL, "the archive holds more than plain files", member.name)
                path.parent.mkdir(parents=True, exist_ok=True)
                source = archive.extractfile(member)
                path.write_bytes(source.read() if source else b"")
    except BaseException:
        shutil.rmtree(arriving, ignore_errors=True)
        raise
    return arriving


def _run(own: Path, request: Json, payload: bytes) -> None:
    """Start a job, or join the same one, and stay with it until its outcome was taken."""
    if hashlib.sha256(payload).hexdigest() != request["bundle"]:
        _send({"event": "error", "kind": "damaged", "message": "the bundle did not arrive as it was sent"})
        return
    folder = own / "jobs" / _job_name(request)
    lease = _place_job(own, folder, request, payload)
    if lease is None:
        _send({"event": "lab needed"})
        return
    _send({"event": "started", "folder": str(folder), "time": time.time()})
    silence = request["grace"] if request.get("step") else 0
    while lease is not None and not _attend(
        own, folder, lease, silence
    ):  # another client cancelled it: start anew
        os.close(lease)
        lease = _place_job(own, folder, request, payload)


def _place_job(own: Path, folder: Path, request: Json, payload: bytes) -> int | None:
    """Start a job unless it runs or has a fresh outcome.

    Returns:
        Its lease, locked as that of a client, or None if the lab must be brought first.
    """
    lab = _lab_folder(own, request)
    with _alone(own):
        if folder.is_dir() and _has_ended(folder) and not _has_fresh_outcome(folder, request["grace"]):
            shutil.rmtree(
                folder, ignore_errors=True
            )  # it was given up, or that machine was started anew meanwhile
        if not folder.is_dir():
            if _lab_sha256(lab) != request["compiled"]:
                return None
            os.utime(lab)
            _sweep(folder.parent)
            arriving = _unpack(own / "arriving", payload)
            (arriving / "lease").touch()
            (arriving / "bundle").write_text(request["bundle"])
            (arriving / "lab").write_text(lab.name)
            lock = os.open(arriving / "supervisor", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            arriving.rename(folder)
            _start_supervisor(folder, lab, request, lock)
        lease = os.open(folder / "lease", os.O_RDWR)
        fcntl.flock(lease, fcntl.LOCK_SH)
        os.utime(lease)
    return lease


def _job_name(request: Json) -> str:
    """Return the name of a job's folder: the same only for the same work in the same surroundings."""
    parts = [request.get(part) for part in ("bundle", "lab", "module", "environment", "allocation")]
    identity = json.dumps([*parts, sys.executable, os.uname().nodename], sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()[:24]


def _attend(own: Path, folder: Path, lease: int, silence: float) -> bool:
    """Renew the lease for each message of the other end, pass progress on, and hand the outcome over.

    Silence of so many seconds is the end of the connection; 0 lets it be as long as it is.

    Returns:
        False if somebody else removed the job before its outcome was handed over.
    """
    position, ended = 0, False
    progress = folder / "progress"
    signal.setitimer(signal.ITIMER_REAL, silence)
    while True:
        if select.select([0], [], [], _POLL_SECONDS)[0]:
            message = os.read(0, 4096)
            if _CANCEL in message:
                _cancel(own, folder)
            elif _DONE in message:
                _leave(own, folder, lease)
            if not message or _CANCEL in message or _DONE in message:
                return True
            os.utime(lease)
            signal.setitimer(signal.ITIMER_REAL, silence)
        if ended:
            continue
        try:
            ended = _has_ended(folder)
            if progress.exists() and progress.stat().st_size > position:
                with progress.open("rb") as file:
                    file.seek(position)
                    lines = file.read()
                whole = lines[: lines.rfind(b"\n") + 1]
                position += len(whole)
                for line in whole.splitlines():
                    _send({"event": "progress", "line": json.loads(line)})
            if ended:
                with _alone(own):
                    event, data = _outcome(folder)
                _send(event, data)
        except FileNotFoundError:
            return False


def _cancel(own: Path, folder: Path) -> None:
    """Let the supervisor end the job and remove its folder, or remove it if the job has ended."""
    with _alone(own), contextlib.suppress(FileNotFoundError):
        (folder / "cancel").touch()
        if _has_ended(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _leave(own: Path, folder: Path, lease: int) -> None:
    """Remove a job whose outcome was fetched, unless another client is still there to fetch it."""
    with _alone(own), contextlib.suppress(BlockingIOError):
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


def _outcome(folder: Path) -> tuple[Json, bytes]:
    """Return the event of a job's end, and the bytes that follow it; raises FileNotFoundError if it is gone."""
    outcome, end, log = (folder / name for name in ("outcome.json", "ended", "log"))
    free = shutil.disk_usage(folder).free
    data = outcome.read_bytes() if outcome.exists() else b""
    reason = end.read_text() if end.exists() else "died"
    tail = log.read_bytes()[-2000:].decode(errors="replace") if log.exists() else ""
    event = {"event": "ended", "reason": reason, "log": tail, "free": free, "size": len(data)}
    return {**event, "sha256": hashlib.sha256(data).hexdigest()}, data


def _is_supervised(folder: Path) -> bool:
    try:
        lock = os.open(folder / "supervisor", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def _has_ended(folder: Path) -> bool:
    return (folder / "ended").exists() or not _is_supervised(folder)


def _has_fresh_outcome(folder: Path, grace: float) -> bool:
    end = folder / "ended"
    return end.exists() and end.read_text() == _FINISHED and 0 <= time.time() - end.stat().st_mtime < grace


def _sweep(jobs: Path) -> None:
    """Remove the folders of jobs that nobody fetched, and of those that were never started."""
    for folder in _folders(jobs, _JOB_NAME):
        if time.time() - folder.stat().st_mtime > IDLE_SECONDS and not _is_supervised(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _start_supervisor(folder: Path, lab: Path, request: Json, lock: int) -> None:
    """Leave a process behind that is no child of the connection and holds none of its files but the lock.

    In a step it stays a child of the station.
    """
    step = bool(request.get("step"))
    station = os.getpid() if step else None
    if child := os.fork():
        os.close(lock)
        if not step:
            os.waitpid(child, 0)
        return
    try:
        if step:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends the job once the station has ended
        else:
            os.setsid()
        if step or os.fork() == 0:
            for descriptor in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
            os.closerange(3, lock)
            os.closerange(lock + 1, lock + _DESCRIPTORS)
            _supervise(folder, lab, request, station)
    finally:
        os._exit(0)


def _supervise(folder: Path, lab: Path, request: Json, station: int | None) -> None:
    """Run the job until it ends, is cancelled, or nobody renews its lease."""
    library, supervisor = ctypes.CDLL(None), os.getpid()
    library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def die_with_supervisor() -> None:
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if os.getppid() != supervisor:
            os._exit(1)  # it died before

    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {**request["environment"], "PYTHONPATH": str(lab), "PYTHONDONTWRITEBYTECODE": "1"}
    with (folder / "log").open("wb") as log:
        job = subprocess.Popen(
            [sys.executable, "-P", "-m", request["module"], str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=environment,
            preexec_fn=die_with_supervisor,
        )
    reason = _watch(folder, job, request["grace"], station)
    if job.poll() is None:
        job.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(_TERM_SECONDS)
    _kill_descendants(os.getpid())
    with _alone(folder.parent.parent):
        if reason == _CANCELLED or (folder / "cancel").exists():
            shutil.rmtree(folder, ignore_errors=True)
        elif folder.is_dir():
            unfinished = folder / ".ended"
            unfinished.write_text(reason)
            unfinished.rename(folder / "ended")


def _watch(folder: Path, job: subprocess.Popen[bytes], grace: float, station: int | None) -> str:
    """Wait for the end of the job, or of the station whose step it is; return the reason."""
    lease, cancel = folder / "lease", folder / "cancel"
    renewed, since = -1, time.monotonic()
    while job.poll() is None:
        time.sleep(_POLL_SECONDS)
        try:
            latest = lease.stat().st_mtime_ns
        except FileNotFoundError:
            return _CANCELLED
        if latest != renewed:
            renewed, since = latest, time.monotonic()
        if cancel.exists():
            return _CANCELLED
        if station is not None and os.getppid() != station:
            return "its step was ended"
        if time.monotonic() - since > grace:
            return "abandoned"
    return f"exit {job.returncode}"


def _kill_descendants(root: int) -> None:
    """Kill everything below a process, until nothing is left; orphans have become its own children."""
    deadline = time.monotonic() + _KILL_SECONDS
    while (pids := _descendants(root)) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, ChildProcessError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
        time.sleep(_POLL_SECONDS)


def _descendants(root: int) -> list[int]:
    parents = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(file.parent.name)] = int(file.read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            continue
    below = {root}
    while more := {pid for pid, parent in parents.items() if parent in below and pid not in below}:
        below |= more
    return sorted(below - {root})


if __name__ == "__main__":
    main()
