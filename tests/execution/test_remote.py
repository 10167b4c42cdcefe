"""Jobs over a real sshd on loopback: the way there and back, and every fault on it."""

from __future__ import annotations

import os
import py_compile
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from textwrap import dedent

import pytest
from remote_kit import Changed, Start, end_connections, jobs, runs, wait_until
from small_lab import SmallLab
from sshd import Server

from warpsmith.errors import BadDefinition, MachineFailed, MachineLacks, Unreachable
from warpsmith.execution import remote, ssh, station
from warpsmith.execution.bundle import Bundle
from warpsmith.execution.contexts import NamedContext
from warpsmith.execution.remote import RemoteMachine
from warpsmith.execution.station_command import unquote_home
from warpsmith.lab.workers.process import list_children, read_stat

# The way there and back


def test_a_job_runs_there_and_leaves_no_folder(entry: NamedContext, bundle: Bundle) -> None:
    lines: list[str] = []
    lab = SmallLab("tell('half'); finish()")
    found = RemoteMachine(entry, lines.append, lab).run(bundle)
    assert found.outcome.bundle_sha256 == bundle.sha256
    assert abs(found.skew) < 5
    assert [getattr(line, "share", None) for line in lines if line == "half"] == [0.5]
    assert jobs(entry) == []
    assert len(list((Path(entry.context.workdir) / station.OWN / "labs").iterdir())) == 1
    again: list[str] = []
    RemoteMachine(entry, again.append, lab).run(bundle)
    assert again == ["half"], "the lab is there already"


def test_only_listed_variables_travel(
    changed: Changed, bundle: Bundle, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = server.folder / "environment"
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("LC_SECRET", "secret")
    monkeypatch.setenv("TRITON_DEBUG", "1")
    lab = SmallLab(f"pathlib.Path('{seen}').write_text(json.dumps(dict(os.environ))); finish()")
    RemoteMachine(changed(variables=("TRITON_DEBUG",)), lab=lab).run(bundle)
    text = seen.read_text()
    assert '"TRITON_DEBUG": "1"' in text
    assert "secret" not in text, "although the client sends and the server accepts every variable"


def test_an_error_there_is_the_same_error(entry: NamedContext, bundle: Bundle) -> None:
    lab = SmallLab("finish(error={'kind': 'BadDefinition', 'message': 'definition.py does not import.'})")
    with pytest.raises(BadDefinition, match=r"^lab: definition\.py does not import"):
        RemoteMachine(entry, lab=lab).run(bundle)
    assert jobs(entry) == []


@pytest.mark.parametrize(
    ("field", "value", "part"),
    [
        ("bundle_sha256", "0" * 64, "bundle"),
        ("lab_sha256", "0" * 64, "lab"),
        ("gate_version", 1, "gate version"),
    ],
)
def test_an_outcome_of_something_else_is_refused(
    entry: NamedContext, bundle: Bundle, field: str, value: object, part: str
) -> None:
    lab = SmallLab(f"outcome['{field}'] = {value!r}; finish()")
    with pytest.raises(MachineFailed, match=f"another {part} than"):
        RemoteMachine(entry, lab=lab).run(bundle)


def test_a_job_that_dies_says_how(entry: NamedContext, bundle: Bundle) -> None:
    with pytest.raises(MachineFailed, match=r"exit 3\) without an outcome: .*out of luck"):
        RemoteMachine(entry, lab=SmallLab("print('out of luck', file=sys.stderr); sys.exit(3)")).run(bundle)
    assert jobs(entry) == []


def test_a_package_that_is_missing_there(entry: NamedContext, bundle: Bundle) -> None:
    with pytest.raises(MachineLacks, match="has no `no_such_module`; `warpsmith doctor --context lab`"):
        RemoteMachine(entry, lab=SmallLab("import no_such_module.part")).run(bundle)


# Faults


def test_a_lost_connection_is_opened_again(entry: NamedContext, bundle: Bundle, server: Server) -> None:
    lines: list[str] = []
    count, go = Path(entry.context.workdir) / "count", Path(entry.context.workdir) / "go"
    lab = SmallLab(f"""
        open("{count}", "a").write("x")
        tell("begun")
        while not os.path.exists("{go}"): time.sleep(0.02)
        finish()
    """)

    def tell(line: str) -> None:
        lines.append(line)
        if line == "begun" and len([each for each in lines if each == "begun"]) == 1:
            end_connections(server)
        if "connecting again" in line:
            go.touch()

    RemoteMachine(entry, tell, lab).run(bundle)
    assert any("connecting again" in line for line in lines)
    assert count.read_text() == "x", "the job was not started twice"


def test_a_job_that_keeps_telling_is_not_taken_for_abandoned(changed: Changed, bundle: Bundle) -> None:
    lab = SmallLab("""
        for _ in range(60):
            tell("part"); time.sleep(0.05)
        finish()
    """)
    RemoteMachine(changed(grace=1), lab=lab).run(bundle)


def test_a_connection_that_stays_lost_ends_the_command(
    changed: Changed, bundle: Bundle, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_WAITS", (0.1,))
    stopped = []

    def tell(line: str) -> None:
        if line == "begun" and not stopped:
            stopped.append(True)
            server.stop()
            end_connections(server)

    try:
        with pytest.raises(Unreachable, match=r"lost for .* ended"):
            RemoteMachine(changed(grace=1), tell, SmallLab("tell('begun'); time.sleep(60)")).run(bundle)
    finally:
        server.start()


def test_a_killed_client_leaves_nothing_running(
    changed: Changed, bundle: Bundle, server: Server, start_client: Start
) -> None:
    entry, pids = changed(grace=3), Path(server.folder) / "pids"
    text = f"""
        child = subprocess.Popen(["sleep", "300"], start_new_session=True)
        pathlib.Path("{pids}").write_text(f"{{os.getpid()}} {{child.pid}} {{os.getppid()}}")
        time.sleep(300)
    """
    client = start_client(entry, bundle, text)
    wait_until(pids.exists)
    time.sleep(3.5)
    job, child, supervisor = map(int, pids.read_text().split())
    assert runs(job), "as long as somebody waits, the lease is renewed"
    client.kill()
    client.wait()
    wait_until(lambda: not any(map(runs, (job, child, supervisor))))
    assert (jobs(entry)[0] / "ended").read_text() == "abandoned"


def test_a_killed_supervisor_takes_its_job_along(entry: NamedContext, bundle: Bundle) -> None:
    def kill(line: str) -> None:
        if line.isdigit():
            pids.append(int(line))
            os.kill(read_parent(int(line)), signal.SIGKILL)

    pids: list[int] = []
    with pytest.raises(MachineFailed, match=r"ended \(died\) without an outcome"):
        RemoteMachine(entry, kill, SmallLab("tell(str(os.getpid())); time.sleep(300)")).run(bundle)
    wait_until(lambda: not runs(pids[0]))


def read_parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_process_of_another_user_stops_no_killing(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(pid: int, _: int) -> None:
        asked.append(pid)
        if pid == 1:
            raise PermissionError

    asked: list[int] = []
    monkeypatch.setattr(station, "_KILL_SECONDS", 0.1)
    monkeypatch.setattr(station, "_descendants", lambda _: [1, 2**22 + 1])
    monkeypatch.setattr(station.os, "kill", kill)
    station._kill_descendants(os.getpid())
    assert {1, 2**22 + 1} <= set(asked)


def test_the_next_client_takes_over_from_a_killed_one(
    changed: Changed, bundle: Bundle, server: Server, start_client: Start
) -> None:
    entry, count = changed(grace=20), Path(server.folder) / "count"
    text = f"""
        open("{count}", "a").write("x")
        while not (folder / "lease").stat().st_mtime_ns: pass
        time.sleep(1.5)
        finish()
    """
    client = start_client(entry, bundle, text)
    wait_until(count.exists)
    client.kill()
    client.wait()
    RemoteMachine(entry, lab=SmallLab(dedent(text))).run(bundle)
    assert count.read_text() == "x"
    assert jobs(entry) == []


def test_an_interrupted_command_cancels_the_job(entry: NamedContext, bundle: Bundle) -> None:
    def interrupt(line: str) -> None:
        if line.isdigit():
            pids.append(int(line))
            raise KeyboardInterrupt

    pids: list[int] = []
    lab = SmallLab("tell(str(os.getpid())); time.sleep(300)")
    with pytest.raises(KeyboardInterrupt):
        RemoteMachine(entry, interrupt, lab).run(bundle)
    wait_until(lambda: not runs(pids[0]))
    wait_until(lambda: not jobs(entry))


def test_a_cancel_removes_a_job_that_has_ended(entry: NamedContext, bundle: Bundle) -> None:
    def interrupt(line: str) -> None:
        if line == "done":
            wait_until(lambda: (jobs(entry)[0] / "ended").exists())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RemoteMachine(entry, interrupt, SmallLab("tell('done'); finish()")).run(bundle)
    wait_until(lambda: not jobs(entry))


def test_another_lab_python_node_or_environment_is_another_job(
    changed: Changed, bundle: Bundle, server: Server, start_client: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, count = changed(grace=20, variables=("TRITON_DEBUG",)), Path(server.folder) / "count-of-others"
    text = f"""
        open("{count}", "a").write("x")
        time.sleep(0.5)
        finish()
    """
    leave_outcome(start_client(entry, bundle, text), entry)
    monkeypatch.setenv("TRITON_DEBUG", "1")
    RemoteMachine(entry, lab=SmallLab(text)).run(bundle)
    monkeypatch.delenv("TRITON_DEBUG")
    RemoteMachine(entry, lab=SmallLab(text.replace("finish()", "finish() # other"))).run(bundle)
    python = changed(grace=20, variables=("TRITON_DEBUG",), python=server.python())
    other = altered(server, "import sys; sys.executable = '/bin/true'")
    with pytest.raises(MachineFailed, match="without an outcome"):
        RemoteMachine(changed(grace=20, variables=("TRITON_DEBUG",), python=other), lab=SmallLab(text)).run(bundle)
    elsewhere = altered(server, "import os; node = os.uname; os.uname = lambda: type('N', (), {'nodename': 'n2'})")
    RemoteMachine(changed(grace=20, python=elsewhere), lab=SmallLab(text)).run(bundle)
    assert count.read_text() == "xxxx", "each of them ran"
    RemoteMachine(python, lab=SmallLab(text)).run(bundle)
    assert count.read_text() == "xxxx", "the first one's outcome is still there for the same client"


def test_an_outcome_is_handed_over_within_the_grace(
    changed: Changed, bundle: Bundle, server: Server, start_client: Start
) -> None:
    entry, count = changed(grace=20), Path(server.folder) / "count-of-late"
    text = f"""
        open("{count}", "a").write("x")
        time.sleep(0.5)
        finish()
    """
    leave_outcome(start_client(entry, bundle, text), entry)
    end = jobs(entry)[0] / "ended"
    os.utime(end, (time.time() - 21,) * 2)
    RemoteMachine(entry, lab=SmallLab(text)).run(bundle)
    assert count.read_text() == "xx"


def leave_outcome(client: subprocess.Popen[bytes], entry: NamedContext) -> None:
    """Stop a client before it fetches the outcome of its job, and kill it afterwards."""
    wait_until(lambda: jobs(entry))
    client.send_signal(signal.SIGSTOP)
    wait_until(lambda: (jobs(entry)[0] / "ended").exists())
    client.kill()
    client.wait()


def test_ctrl_c_in_a_terminal_cancels_the_job(
    changed: Changed, bundle: Bundle, server: Server, start_client: Start
) -> None:
    entry, file = changed(grace=60), Path(server.folder) / "pid"
    text = f"""
        tell("begun")
        pathlib.Path("{file}").write_text(str(os.getpid()))
        time.sleep(300)
    """
    client = start_client(entry, bundle, text)
    wait_until(lambda: file.exists() and file.read_text())
    groups = [stat.group for child in list_children(client.pid) if (stat := read_stat(str(child)))]
    assert groups
    assert client.pid not in groups, "a terminal's Ctrl-C would end the connection before the job is cancelled"
    os.killpg(client.pid, signal.SIGINT)
    client.wait()
    wait_until(lambda: not runs(int(file.read_text())))
    wait_until(lambda: not jobs(entry))


def test_a_full_disk_there(changed: Changed, server: Server, bundle: Bundle) -> None:
    lab = SmallLab("finish() # " + os.urandom(20000).hex())
    with pytest.raises(MachineLacks, match=r"the disk of .* is full"):
        RemoteMachine(changed(python=server.python("ulimit -f 8")), lab=lab).run(bundle)
    assert not list((Path(changed().context.workdir) / station.OWN / "labs").iterdir()), "half a lab is no lab"


def test_a_changed_lab_there_is_brought_again(entry: NamedContext, bundle: Bundle) -> None:
    lines: list[str] = []
    machine = RemoteMachine(entry, lines.append, SmallLab("finish()"))
    machine.run(bundle)
    (performer,) = Path(entry.context.workdir).glob(f"{station.OWN}/labs/*/performer.py")
    performer.write_text(performer.read_text().replace("finish()", "sys.exit(9)"))
    machine.run(bundle)
    assert len([line for line in lines if "bringing the lab" in line]) == 2


def test_bytecode_in_the_lab_does_not_run(entry: NamedContext, bundle: Bundle, tmp_path: Path) -> None:
    class TwoModules(SmallLab):
        @property
        def contents(self) -> dict[str, bytes]:  # type: ignore[override]
            return super().contents | {"judge.py": b"SAYS = 'sent'\n"}

    lines: list[str] = []
    lab = TwoModules(
        "import judge; subprocess.run([sys.executable, '-c', 'import judge']); tell(judge.SAYS); finish()"
    )
    RemoteMachine(entry, lines.append, lab).run(bundle)
    (folder,) = (Path(entry.context.workdir) / station.OWN / "labs").iterdir()
    target = folder / "__pycache__" / f"judge.{sys.implementation.cache_tag}.pyc"
    compiled = target.read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["__pycache__", "judge.py", "performer.py"]
    planted = tmp_path / "judge.py"
    planted.write_text("SAYS = 'else'\n")
    py_compile.compile(str(planted), str(target), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    RemoteMachine(entry, lines.append, lab).run(bundle)
    assert [line for line in lines if line in ("sent", "else")] == ["sent", "sent"]
    assert target.read_bytes() == compiled, "two copies of a lab have the same bytecode"


def test_a_copy_whose_hash_is_not_known_here_is_brought_again(
    entry: NamedContext, bundle: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = RemoteMachine(entry, lab=SmallLab("finish()"))
    machine.run(bundle)
    (folder,) = (Path(entry.context.workdir) / station.OWN / "labs").iterdir()
    node = folder.stat().st_ino
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user of the folder"))
    lines: list[str] = []
    RemoteMachine(entry, lines.append, SmallLab("finish()")).run(bundle)
    assert [line.split(",")[0] for line in lines] == ["lab: bringing the lab"]
    assert folder.stat().st_ino == node, "it is the same copy, which jobs may use"


def test_old_labs_go(entry: NamedContext, bundle: Bundle) -> None:
    for number in range(station.LABS_TO_KEEP + 2):
        RemoteMachine(entry, lab=SmallLab(f"finish() # {number}")).run(bundle)
    assert len(list(Path(entry.context.workdir).glob(f"{station.OWN}/labs/*"))) == station.LABS_TO_KEEP


def test_another_clock_is_known(changed: Changed, server: Server, bundle: Bundle) -> None:
    later = changed(python=altered(server, "import time; real = time.time; time.time = lambda: real() + 3600"))
    assert RemoteMachine(later, lab=SmallLab("finish()")).run(bundle).skew == pytest.approx(3600, abs=5)
    assert RemoteMachine(later, lab=SmallLab("finish()")).probe().time == pytest.approx(time.time() + 3600, abs=5)


def test_an_old_python_there(changed: Changed, server: Server, bundle: Bundle) -> None:
    old = changed(python=altered(server, "import sys; sys.version_info = (3, 9, 2)"))
    with pytest.raises(MachineLacks, match=r"the lab needs 3\.11"):
        RemoteMachine(old, lab=SmallLab("finish()")).run(bundle)


def altered(server: Server, text: str) -> str:
    """A Python there that runs a line before each program that is given as text."""
    return server.python(f'[ "$2" = -c ] && exec {sys.executable} "$1" -c "{text}; $3"')


def test_a_shell_that_greets(changed: Changed, server: Server, bundle: Bundle) -> None:
    greeting = server.python("echo; echo Welcome to the cluster; echo '{}'")
    RemoteMachine(changed(python=greeting), lab=SmallLab("finish()")).run(bundle)


def test_a_python_in_the_home_folder(changed: Changed, bundle: Bundle) -> None:
    with pytest.raises(MachineLacks, match="no Python at `~/no such/python`"):
        RemoteMachine(changed(python="~/no such/python"), lab=SmallLab("finish()")).run(bundle)
    assert unquote_home("'~/no such/python' -I") == "~/'no such/python' -I"


def test_no_python_there(changed: Changed, bundle: Bundle) -> None:
    with pytest.raises(MachineLacks, match="no Python at `/nowhere/python3`"):
        RemoteMachine(changed(python="/nowhere/python3"), lab=SmallLab("finish()")).run(bundle)


def test_an_unknown_host_key(entry: NamedContext, bundle: Bundle, server: Server) -> None:
    server.known_hosts.write_text("")
    try:
        with pytest.raises(Unreachable, match="host key is not known; run `ssh there` once"):
            RemoteMachine(entry, lab=SmallLab("finish()")).run(bundle)
    finally:
        server.trust()
    assert not list(Path(entry.context.workdir).iterdir())


def test_a_changed_host_key(entry: NamedContext, bundle: Bundle, server: Server) -> None:
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {(server.folder / 'user.pub').read_text()}")
    try:
        with pytest.raises(Unreachable, match="host key has changed"):
            RemoteMachine(entry, lab=SmallLab("finish()")).run(bundle)
    finally:
        server.trust()


def test_a_host_that_does_not_answer(changed: Changed, server: Server, tmp_path: Path, bundle: Bundle) -> None:
    config = tmp_path / "config"
    config.write_text(server.config.read_text().replace(f"Port {server.port}", "Port 9"))
    with pytest.raises(Unreachable, match="nothing answers"):
        RemoteMachine(changed(ssh_config=str(config)), lab=SmallLab("finish()")).run(bundle)


def test_a_folder_that_cannot_be(changed: Changed, server: Server, bundle: Bundle) -> None:
    (server.folder / "file").write_text("")
    with pytest.raises(MachineLacks, match=r"file/there: Not a directory; .*--workdir"):
        RemoteMachine(changed(workdir=str(server.folder / "file" / "there")), lab=SmallLab("finish()")).run(bundle)


def test_connections_that_open_at_once_become_one(entry: NamedContext) -> None:
    threads = [threading.Thread(target=ssh.SshConnection(entry).open) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sockets = os.environ["XDG_RUNTIME_DIR"]
    lines = [path.read_bytes().decode() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert len([line for line in lines if line.startswith("ssh") and sockets in line]) == 1


# Before anything runs


def test_a_probe_says_what_is_there(entry: NamedContext, bundle: Bundle) -> None:
    machine = RemoteMachine(entry, lab=SmallLab("finish()"))
    before = machine.probe(["pydantic", "no-such-package"])
    assert (before.executable, before.lab, before.writable) == (sys.executable, False, True)
    assert before.packages["pydantic"] is not None
    assert before.packages["no-such-package"] is None
    machine.run(bundle)
    assert machine.probe().lab
