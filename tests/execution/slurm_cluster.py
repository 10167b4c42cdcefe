"""A real Slurm on loopback with one node and four GPUs that do not exist, run by the tests' user.

It has a key, ports, settings and folders of its own, and needs neither cgroups nor systemd.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from remote_kit import wait_until

_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
_SEARCHED = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
_WAIT_SECONDS = 30.0
_BATCH = 0xFFFFFFFB
"""Number of the step that is the batch script."""
NODE = "node1"


def missing() -> str:
    """Why no cluster can run here; empty if one can."""
    if all(shutil.which(program, path=_SEARCHED) for program in _PROGRAMS):
        return ""
    return "no Slurm: `apt-get install --no-install-recommends slurmctld slurmd slurm-client munge` brings it"


class Cluster:
    """The cluster, and the file of its settings, which `SLURM_CONF` names to clients."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.config = folder, folder / "slurm.conf"
        for name in ("state", "spool", "there"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        sockets = [socket.socket() for _ in range(2)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in sockets]
        for each in sockets:
            each.close()
        host, user = socket.gethostname().split(".")[0], getpass.getuser()
        self.config.write_text(
            f"ClusterName=tests\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={ports[0]}\nSlurmdPort={ports[1]}\n"
            f"SlurmUser={user}\nSlurmdUser={user}\nAuthType=auth/munge\n"
            f"AuthInfo=socket={folder}/munge.socket,cred_expire=5\n"
            f"StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool\n"
            f"SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.pid\n"
            "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\nSwitchType=switch/none\n"
            "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nSchedulerType=sched/builtin\n"
            "SchedulerParameters=batch_sched_delay=0,sched_min_interval=1,sched_interval=1\n"
            "JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n"
            "SlurmdParameters=config_overrides\nReturnToService=2\nKillWait=2\nGresTypes=gpu\nJobRequeue=1\n"
            f"NodeName={NODE} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8 Boards=1 SocketsPerBoard=1"
            " CoresPerSocket=8 ThreadsPerCore=1 Gres=gpu:4 RealMemory=1000 State=UNKNOWN\n"
            "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n"
            f"PartitionName=gpu Nodes={NODE} Default=YES MaxTime=1:00:00 State=UP PriorityTier=1\n"
            f"PartitionName=urgent Nodes={NODE} MaxTime=1:00:00 State=UP PriorityTier=9\n"
        )
        devices = ("null", "zero", "full", "random")  # any device files serve
        (folder / "gres.conf").write_text(
            "".join(f"NodeName={NODE} Name=gpu File=/dev/{each}\n" for each in devices)
        )
        self.environment = {**os.environ, "PATH": _SEARCHED, "SLURM_CONF": str(self.config)}
        self._daemons: list[subprocess.Popen[bytes]] = []
        munge = [f"--{part}={folder}/munge.{part.split('-')[0]}" for part in ("key-file", "socket", "pid-file")]
        munge += [f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed"]
        self._start("munged", "--force", "--foreground", *munge)
        self._wait(lambda: (folder / "munge.socket").exists())
        self._start("slurmctld", "-D", "-c")
        self._start("slurmd", "-D", "-N", NODE)
        self._wait(lambda: self.ask("sinfo", "--noheader", "--format=%T").strip() == "idle")

    def ask(self, *command: str) -> str:
        """What a command of Slurm writes."""
        return subprocess.run(command, capture_output=True, text=True, env=self.environment, check=False).stdout

    def jobs(self) -> list[str]:
        """Numbers of the jobs that have not ended."""
        return self.ask("squeue", "--noheader", "--format=%i").split()

    def state(self, job: str) -> str:
        return self.ask("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T").strip()

    def await_batch(self) -> None:
        """Wait until the batch scripts run: a job that is requeued before, Slurm takes for a failed one."""
        wait_until(lambda: all(list((self.folder / "spool").glob(f"*_{job}.{_BATCH}")) for job in self.jobs()))

    def take_down(self, job: str) -> None:
        """Let the node fail, which puts the job on it back in the queue, and return to service at once."""
        self.ask("scontrol", "update", f"NodeName={NODE}", "State=DOWN", "Reason=test")
        wait_until(lambda: self.state(job) == "PENDING")
        self.ask("scontrol", "update", f"NodeName={NODE}", "State=RESUME")

    def preempt(self) -> None:
        """Let a short job of more weight take the node."""
        self.ask("sbatch", "--partition=urgent", "--gres=gpu:4", "--output=/dev/null", "--wrap", "sleep 0.5")

    def clear(self) -> None:
        """End every job."""
        self.ask("scancel", "--me")
        wait_until(lambda: not self.jobs())

    def stop(self) -> None:
        self.clear()
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in self._daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _start(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.log").open("ab") as log:
            daemon = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment
            )
        self._daemons.append(daemon)

    def _wait(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while not condition():
            if time.monotonic() > deadline or any(daemon.poll() is not None for daemon in self._daemons):
                logs = "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))
                for daemon in self._daemons:
                    daemon.kill()
                raise RuntimeError(logs)
            time.sleep(0.05)


if __name__ == "__main__":
    root = Path(sys.argv[1])
    root.mkdir(parents=True)
    cluster = Cluster(root)
    sys.stdout.write(f"{cluster.config}\n")
    sys.stdout.flush()
    time.sleep(float(sys.argv[2]))
    cluster.stop()
