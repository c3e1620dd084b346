"""One `hato-dev` with its data, its log and its memory; stopped by its own pid."""

import json
import os
import pathlib
import select
import subprocess
import time

from cgroup import Cgroup, Unavailable
from wire import SERVICES, Client, Lost, Refused

GROUP_BYTES = 512 << 20
MEMORY_BYTES = 400 << 20
# Without a group, a server that takes this much is killed before the machine has no memory left.
RUNAWAY_BYTES = 8 * GROUP_BYTES
READY_SECONDS = 120
# The services of hato-dev stop one after another, each in 10 s at most.
STOP_SECONDS = 40


class NotStarted(Exception):
    """The server did not become ready."""


def binary(root):
    """The path of `hato-dev`: HATO_DEV, or a release build of this repository. None if there is none."""
    if "HATO_DEV" in os.environ:
        return os.environ["HATO_DEV"]
    places = [f"{root}/{folder}/.build/release/hato-dev" for folder in ("Benchmarks", ".")]
    return next((place for place in places if os.access(place, os.X_OK)), None)


class Server:
    """Started by `start`; `stop` must follow, whatever happens."""

    def __init__(self, program, folder, ports, variables, without_cgroup=""):
        self.program, self.folder, self.ports, self.variables = program, folder, ports, variables
        self.log = f"{folder}/log"
        # `without_cgroup` says why there is no group.
        self.process, self.cgroup, self.without_cgroup = None, None, without_cgroup
        self.resident_max, self.high_water, self.admin_key = 0, 0, ""
        self.files_max, self.files_at = 0, 0.0

    def start(self):
        """Starts the server and waits until each service is ready. Raises NotStarted."""
        if self.cgroup is None and not self.without_cgroup:
            try:
                self.cgroup = Cgroup(GROUP_BYTES)
            except Unavailable as error:
                self.without_cgroup = str(error)
        command = [self.program, "--data", f"{self.folder}/data", "--memory-bytes", str(MEMORY_BYTES),
                   "--exit-with-stdin"]
        for service in (*SERVICES, "gateway"):
            command += [f"--{service}-port", "0"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                env={**os.environ, **self.variables}, preexec_fn=self.cgroup.enter if self.cgroup else None)
        deadline = time.monotonic() + READY_SECONDS
        ready = self._ready_line(deadline)
        with open(ready["adminKeyFile"], encoding="ascii") as file:
            self.admin_key = file.readline().strip()
        self.ports.set(ready)
        self._await_health(deadline)

    def _ready_line(self, deadline):
        output = self.process.stdout
        while time.monotonic() < deadline:
            if select.select([output], [], [], 0.2)[0]:
                text = output.readline()
                if not text:
                    raise NotStarted(f"hato-dev ended with {self.process.wait()}")
                return json.loads(text)
        raise NotStarted(f"hato-dev was not ready within {READY_SECONDS} s")

    def _await_health(self, deadline):
        for service in SERVICES:
            client = Client(self.ports, service, self.admin_key)
            while True:
                try:
                    if client.call("service.health")["status"] == "ready":
                        break
                except (Lost, Refused) as error:
                    if self.process.poll() is not None:
                        raise NotStarted(f"hato-dev ended with {self.process.returncode}") from error
                if time.monotonic() > deadline:
                    raise NotStarted(f"{service} was not ready within {READY_SECONDS} s")
                time.sleep(0.05)
            client.close()

    def is_alive(self):
        return self.process.poll() is None

    def sample(self):
        """Reads the memory of the process."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii", errors="replace") as file:
                figures = dict(text.split(":", 1) for text in file if text.startswith("Vm"))
        except OSError:
            return
        if "VmRSS" in figures:
            self.resident_max = max(self.resident_max, int(figures["VmRSS"].split()[0]) << 10)
            self.high_water = max(self.high_water, int(figures["VmHWM"].split()[0]) << 10)
        if self.cgroup:
            self.cgroup.sample()
        elif self.resident_max > RUNAWAY_BYTES and self.is_alive():
            self.process.kill()
            self.process.wait()

        # Rarely: thousands of files take milliseconds to list.
        if time.monotonic() > self.files_at + 1:
            self.files_at = time.monotonic()
            self.files_max = max(self.files_max, self.open_files())

    def open_files(self):
        """How many files and sockets the process has open."""
        try:
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except OSError:
            return 0

    def store_log_bytes(self):
        """The sizes of all stores' logs that are read at the next start."""
        logs = pathlib.Path(self.folder, "data").glob("**/*.log")
        return sum(path.stat().st_size for path in logs)

    def kill(self):
        """Ends the process with SIGKILL; clients wait for the next start."""
        self.sample()
        self.ports.set(None)
        self.process.kill()
        self.process.wait()
        self._close_pipes()

    def stop(self):
        """Stops the process if it runs. Returns its exit code and the seconds that it took."""
        if self.process is None:
            return None, 0.0
        begin = time.monotonic()
        if self.is_alive():
            self.process.terminate()
            try:
                self.process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        code = self.process.wait()
        self._close_pipes()
        if self.cgroup:
            self.cgroup.remove()
            self.cgroup = None
        return code, time.monotonic() - begin

    def _close_pipes(self):
        self.process.stdin.close()
        self.process.stdout.close()

    def last_lines(self, count=20):
        """The end of the log."""
        with open(self.log, "rb") as file:
            file.seek(max(0, os.path.getsize(self.log) - 64_000))
            return file.read().decode(errors="replace").splitlines()[-count:]
