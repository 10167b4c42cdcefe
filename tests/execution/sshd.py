"""A real OpenSSH server on loopback, run by the tests' user with keys, settings and folders of its own."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

SSHD = next((path for path in (shutil.which("sshd"), "/usr/sbin/sshd") if path and Path(path).exists()), None)
_WAIT_SECONDS = 10.0


def missing() -> str:
    """Why no server can run here; empty if one can."""
    if SSHD is None or shutil.which("ssh") is None:
        return "no sshd: `apt-get install openssh-server` brings it"
    if (
        os.geteuid() == 0
        and not Path("/run/sshd").is_dir()
        and subprocess.run(["unshare", "-m", "true"]).returncode
    ):
        return "sshd of the superuser needs /run/sshd, or a mount namespace of its own"
    return ""


class Server:
    """The server, and the settings by which a client reaches it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.workdir = folder, folder / "there"
        self.known_hosts, self.config = folder / "known_hosts", folder / "ssh_config"
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        shutil.copy(folder / "user.pub", folder / "authorized_keys")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
            f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
            f"PasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 100\n"
            f"AcceptEnv *\nSetEnv XDG_STATE_HOME={folder}/state HOME={folder}/home\n"
        )
        # Start-up files of the tests' user stay out: killed halfway, some leave a lock on which every shell waits.
        (folder / "home").mkdir()
        self.config.write_text(
            f"Host there\n  HostName 127.0.0.1\n  Port {self.port}\n  User {getpass.getuser()}\n"
            f"  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {self.known_hosts}\n"
            f"  SendEnv *\n"
        )
        self.trust()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def trust(self) -> None:
        """Let the client know the host's key."""
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {(self.folder / 'host.pub').read_text()}")

    def start(self) -> None:
        command = shlex.join([str(SSHD), "-D", "-e", "-f", str(self.folder / "sshd_config")])
        if os.geteuid() == 0 and not Path("/run/sshd").is_dir():
            inside = f"mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec {command}"
            command = f"exec unshare -m sh -c {shlex.quote(inside)}"
        with (self.folder / "sshd.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", command], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise RuntimeError((self.folder / "sshd.log").read_text()) from None
                time.sleep(0.05)

    def stop(self) -> None:
        """Stop listening; connections that are open go on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def python(self, before: str = "") -> str:
        """Path of a Python there that runs some lines of shell first."""
        path = self.folder / f"python-{len(list(self.folder.glob('python-*')))}"
        path.write_text(f'#!/bin/sh\n{before}\nexec {shlex.quote(sys.executable)} "$@"\n')
        path.chmod(0o755)
        return str(path)


if __name__ == "__main__":
    root = Path(sys.argv[1])
    root.mkdir(parents=True)
    server = Server(root)
    sys.stdout.write(f"{server.config}\n")
    sys.stdout.flush()
    time.sleep(float(sys.argv[2]))
    server.stop()
