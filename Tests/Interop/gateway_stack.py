"""Auth and messages with a gateway in front of them, each a built program of its own, so that each can be restarted."""

import json
import os
import socket
import subprocess
import tempfile

import trustme

DEADLINE = 60
ADMIN_KEY = "administrator-key-of-the-tests-0123456789"


class Program:
    """A `serve` on a free port, or on the port it had before."""

    def __init__(self, name, arguments, folder, port=0):
        path = os.path.join(os.path.dirname(os.environ["HATO_DEV"]), name)
        command = [path, "serve", "--exit-with-stdin", "--port", str(port), *arguments]
        self.log = open(os.path.join(folder, f"{name}.log"), "ab")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HATO_")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=environment)
        line = self.process.stdout.readline()
        if not line:
            with open(self.log.name, encoding="utf-8") as file:
                raise AssertionError(f"{name} is not ready: {file.read()}")
        host, port = json.loads(line)["listening"].rsplit(":", 1)
        self.address = (host, int(port))

    @property
    def place(self):
        return f"{self.address[0]}:{self.address[1]}"

    def stop(self, kill=False):
        self.process.kill() if kill else self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.log):
            file.close()


class GatewayStack:
    """Three programs and an administrator's key.

    `rules` are those of the default database; `gateway` and `auth` have further settings of these. With `tls`, it has a
    certificate for localhost, whose authority is in the file `authority`. With `emulator` it takes the words of
    Firebase's emulators.
    """

    def __init__(self, rules=None, gateway=(), tls=False, emulator=False, auth=()):
        self.rules, self.gateway, self.tls = rules, list(gateway), tls
        self.emulator, self.auth = emulator, auth

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="hato-gateway-")
        self.folder = self.temporary.name
        key = os.path.join(self.folder, "key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(ADMIN_KEY)
        self.key_file = key
        self.programs = {}
        if self.tls:
            self.make_certificate()
        if self.emulator:
            self.gateway += ["--emulator", "true", "--admin-key-file", key]
        try:
            self.start("auth")
            self.start("messages")
            self.start("gateway")
            if self.rules is not None:
                self.call("messages", "messages.rules.set", rules=json.dumps(self.rules))
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self, name, port=0):
        address = {name: program.place for name, program in self.programs.items()}
        data = ["--data", os.path.join(self.folder, name), "--admin-key-file", self.key_file]
        outgoing = ["--outgoing-key-file", self.key_file]
        arguments = {
            "auth": lambda: [*data, "--scrypt-log-n", "4", "--limit-loopback", "false", *self.auth],
            "messages": lambda: [*data, *outgoing, "--auth", address["auth"]],
            "gateway": lambda: [
                *outgoing, "--messages", address["messages"], "--auth", address["auth"], *self.gateway],
        }[name]()
        self.programs[name] = Program(f"hato-{name}", arguments, self.folder, port)

    def make_certificate(self):
        authority = trustme.CA()
        files = {name: os.path.join(self.folder, name) for name in ("authority", "certificate", "certificate-key")}
        certificate = authority.issue_cert("localhost")
        authority.cert_pem.write_to_path(files["authority"])
        for number, blob in enumerate(certificate.cert_chain_pems):
            blob.write_to_path(files["certificate"], append=number > 0)
        certificate.private_key_pem.write_to_path(files["certificate-key"])
        os.chmod(files["certificate-key"], 0o600)
        self.authority = files["authority"]
        self.gateway += ["--tls-certificate", files["certificate"], "--tls-key", files["certificate-key"]]

    def restart(self, name, kill=False):
        """Stops a program and starts it on the same port."""
        port = self.programs[name].address[1]
        self.programs[name].stop(kill)
        self.start(name, port)

    @property
    def host(self):
        return self.programs["gateway"].place

    @property
    def url(self):
        if self.tls:
            return f"https://localhost:{self.programs['gateway'].address[1]}"
        return f"http://{self.host}"

    def request(self, service, method, **params):
        """The response to one native call."""
        with socket.create_connection(self.programs[service].address, timeout=DEADLINE) as connection:
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as lines:
                return json.loads(lines.readline())

    def call(self, service, method, **params):
        """The result of an administrator's call."""
        response = self.request(service, method, auth=ADMIN_KEY, **params)
        if "result" not in response:
            raise AssertionError(f"{method}: {response}")
        return response["result"]

    def sign_up(self, **params):
        """A new session of auth: uid, idToken, refreshToken."""
        return self.request("auth", "auth.signUp", **params)["result"]

    def __exit__(self, *_):
        for program in reversed(self.programs.values()):
            program.stop()
        self.temporary.cleanup()
