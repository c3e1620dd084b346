"""A throw-away stack for the tests of this folder: one `hato-dev --ephemeral`, stopped by its own pid."""

import json
import os
import subprocess


class Stack:
    def __init__(self, *arguments):
        self.arguments = arguments

    def __enter__(self):
        ports = ["--auth-port", "0", "--messages-port", "0", "--notifier-port", "0",
                 "--gateway-port", "0"]
        command = [os.environ["HATO_DEV"], "--ephemeral", "--exit-with-stdin", *ports, *self.arguments]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.ready = json.loads(self.process.stdout.readline())
        with open(self.ready["adminKeyFile"], encoding="ascii") as file:
            self.admin_key = file.readline().strip()
        return self

    def address(self, service):
        host, port = self.ready[service].rsplit(":", 1)
        return host, int(port)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
