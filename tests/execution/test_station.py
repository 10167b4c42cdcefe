"""What the other machine keeps: clients that ask for one job at once, and a folder of its own."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from remote_kit import Changed, Start, jobs, wait_until
from small_lab import SmallLab
from sshd import Server

from warpsmith.errors import MachineLacks
from warpsmith.execution import station
from warpsmith.execution.bundle import Bundle
from warpsmith.execution.contexts import NamedContext
from warpsmith.execution.remote import RemoteMachine

# Several clients


def test_clients_at_once_share_one_job(changed: Changed, bundle: Bundle, server: Server) -> None:
    entry, count = changed(grace=20), Path(server.folder) / "count-at-once"
    lab = SmallLab(f"open('{count}', 'a').write('x'); time.sleep(1); finish()")
    left = Path(entry.context.workdir) / station.OWN / "arriving"
    RemoteMachine(entry, lab=lab).probe()
    outcomes, errors = [], []

    def run() -> None:
        try:
            outcomes.append(RemoteMachine(entry, lab=lab).run(bundle))
        except Exception as error:
            errors.append(error)

    for number in (1, 2):
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert len(outcomes) == 4 * number
        assert count.read_text() == "x" * number
        assert jobs(entry) == []
        left.mkdir()  # as a station leaves it that was killed
        (left / "outcome.json").touch()


def test_a_job_that_another_client_cancels_starts_anew(
    changed: Changed, bundle: Bundle, server: Server, start_client: Start
) -> None:
    entry, count, go = changed(grace=20), Path(server.folder) / "count-of-cancels", Path(server.folder) / "go"
    text = f"""
        open("{count}", "a").write("x")
        tell("begun")
        while not os.path.exists("{go}"): time.sleep(0.02)
        finish()
    """
    first, begun = start_client(entry, bundle, text), []

    def tell(line: str) -> None:
        if line == "begun":
            begun.append(line)
            if len(begun) == 1:
                os.killpg(first.pid, signal.SIGINT)
            else:
                go.touch()

    wait_until(count.exists)
    RemoteMachine(entry, tell, SmallLab(text)).run(bundle)
    assert count.read_text() == "xx"
    assert jobs(entry) == []


def test_the_lab_of_a_running_job_stays(
    changed: Changed, bundle: Bundle, server: Server, start_client: Start
) -> None:
    entry, go = changed(grace=20), Path(server.folder) / "go-with-lab"
    text = f"""
        while not os.path.exists("{go}"): time.sleep(0.02)
        finish()
    """
    client = start_client(entry, bundle, text)
    wait_until(lambda: jobs(entry))
    (lab,) = (Path(entry.context.workdir) / station.OWN / "labs").iterdir()
    node = lab.stat().st_ino
    for number in range(station.LABS_TO_KEEP + 1):
        RemoteMachine(entry, lab=SmallLab(f"# {number}")).bring_lab()
    RemoteMachine(entry, lab=SmallLab(text)).bring_lab()
    assert lab.stat().st_ino == node, "a whole lab is not replaced"
    go.touch()
    assert client.wait() == 0


# The folder there


def test_nothing_of_the_user_is_removed(entry: NamedContext, bundle: Bundle) -> None:
    root = Path(entry.context.workdir)
    own = root / station.OWN
    (root / "elsewhere").mkdir()
    own.mkdir(mode=0o700)
    old = [root / name for name in ("jobs/mine", "jobs/" + "a" * 24, "labs/1", "labs/2", "labs/3", "labs/4")]
    old += [own / "jobs" / "mine", own / "labs" / "mine"]
    for path in old:
        path.mkdir(parents=True)
    for path in (own / "jobs", own / "labs"):
        path.chmod(0o700)
        (path / "note").write_text("a plain file")
        (path / ("c" * (24 if path.name == "jobs" else 64))).symlink_to(root / "elsewhere")
    given_up = own / "jobs" / ("b" * 24)
    given_up.mkdir()
    links = sorted(own.glob("*/c*"))
    for path in (*old, given_up, root / "elsewhere", own / "jobs" / "note"):
        os.utime(path, (0, 0))
    for number in range(station.LABS_TO_KEEP + 1):
        RemoteMachine(entry, lab=SmallLab(f"finish() # {number}")).run(bundle)
    assert all(path.is_dir() for path in old)
    assert all(path.is_symlink() for path in links)
    assert (own / "jobs" / "note").exists()
    assert (root / "elsewhere").is_dir()
    assert not given_up.exists()
    assert len([path for path in (own / "labs").iterdir() if len(path.name) == 64 and not path.is_symlink()]) == 3


def test_the_folder_there_is_private(entry: NamedContext, bundle: Bundle, server: Server) -> None:
    RemoteMachine(entry, lab=SmallLab("finish()")).run(bundle)
    own = Path(entry.context.workdir) / station.OWN
    assert not [path for path in (own, *own.rglob("*")) if path.stat().st_mode & 0o077]
    own.chmod(0o755)
    for use in (lambda machine: machine.run(bundle), lambda machine: machine.probe()):
        with pytest.raises(MachineLacks, match=r"station: it must be a real folder that you own"):
            use(RemoteMachine(entry, lab=SmallLab("finish()")))
    own.chmod(0o700)
    own.rename(own.with_name("real"))
    own.symlink_to(own.with_name("real"))
    with pytest.raises(MachineLacks, match=r"station: it must be a real folder that you own"):
        RemoteMachine(entry, lab=SmallLab("finish()")).run(bundle)
