"""A memory limit for the server: a control group of its own, of version 2 or 1."""

import os
import time

ROOT = "/sys/fs/cgroup"


class Unavailable(Exception):
    """No control group can be made; the text says why."""


class Version2:
    """The files of a control group of version 2."""

    root = ROOT
    limit, current, peak, events = "memory.max", "memory.current", "memory.peak", "memory.events"
    # Each is absent in some kernels.
    further = (("memory.swap.max", 0), ("memory.oom.group", 1))


class Version1:
    """The files of a control group of version 1."""

    root = f"{ROOT}/memory"
    limit, current = "memory.limit_in_bytes", "memory.usage_in_bytes"
    peak, events = "memory.max_usage_in_bytes", "memory.oom_control"
    further = (("memory.swappiness", 0),)


class Cgroup:
    """Made by the constructor, which raises Unavailable; `remove` when its processes have ended."""

    def __init__(self, limit):
        self.highest = 0
        if os.path.exists(f"{ROOT}/cgroup.controllers"):
            self.files = Version2
        elif os.path.exists(f"{Version1.root}/{Version1.limit}"):
            self.files = Version1
        else:
            raise Unavailable(f"{ROOT} has no memory controller")
        self.path = f"{self.files.root}/hato-attacks-{os.getpid()}"
        try:
            os.mkdir(self.path)
        except OSError as error:
            raise Unavailable(str(error)) from error
        try:
            self._write(self.files.limit, limit)
            for name, value in self.files.further:
                if os.path.exists(f"{self.path}/{name}"):
                    self._write(name, value)
        except OSError as error:
            os.rmdir(self.path)
            raise Unavailable(f"memory cannot be limited in {self.files.root}: {error}") from error

    def _write(self, name, value):
        with open(f"{self.path}/{name}", "w", encoding="ascii") as file:
            file.write(str(value))

    def _read(self, name):
        try:
            with open(f"{self.path}/{name}", encoding="ascii") as file:
                return file.read()
        except OSError:
            return ""

    def enter(self):
        """Moves the calling process into the group."""
        self._write("cgroup.procs", os.getpid())

    def sample(self):
        self.highest = max(self.highest, int(self._read(self.files.current) or 0))

    def peak(self):
        """The most bytes at one time, and where the figure comes from."""
        peak = self._read(self.files.peak)
        return (int(peak), self.files.peak) if peak else (self.highest, f"{self.files.current}, sampled")

    def oom_kills(self):
        for text in self._read(self.files.events).splitlines():
            if text.startswith("oom_kill "):
                return int(text.split()[1])
        return 0

    def remove(self):
        # A group can be removed a moment after its last process has ended.
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                os.rmdir(self.path)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.05)
