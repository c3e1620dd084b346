"""Requests as lines, and a blocking client for set-up, the honest client and the checks."""

import json
import multiprocessing
import socket
import time

SERVICES = ("auth", "messages", "notifier")
CONTEXT = multiprocessing.get_context("fork")


class Refused(Exception):
    """The service responded with an error; the text of this exception is its reason."""

    def __init__(self, error):
        data = error.get("data") or {}
        super().__init__(str(data.get("reason", error.get("code"))))
        self.error = error


class Lost(Exception):
    """No response: the connection ended, or the time was over."""


class Ports:
    """The ports of the services, shared with all processes; 0 while the server is down."""

    def __init__(self):
        self.numbers = CONTEXT.RawArray("i", len(SERVICES))

    def set(self, ready):
        for index, service in enumerate(SERVICES):
            self.numbers[index] = int(ready[service].rsplit(":", 1)[1]) if ready else 0

    def address(self, service):
        """Raises ConnectionRefusedError while the server is down, without a connection attempt."""
        port = self.numbers[SERVICES.index(service)]
        if port == 0:
            raise ConnectionRefusedError("the server is down")
        return "127.0.0.1", port


def request(method, params=None, number=1):
    """A request as text, without the end of the line."""
    fields = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
    return json.dumps(fields, separators=(",", ":"))


def line(method, params=None, number=1):
    """A request as a line."""
    return request(method, params, number).encode() + b"\n"


def batch(*requests):
    """Requests as the line of a batch."""
    return ("[" + ",".join(requests) + "]\n").encode()


def set_line(path, value):
    """A set of a value that is JSON text already."""
    return request("messages.set", {"path": path, "value": 0}).replace(
        '"value":0', '"value":' + value).encode() + b"\n"


class Client:
    """One connection at a time; opened by the first call, and again after it was lost. `source` is its address."""

    def __init__(self, ports, service, credential=None, source="127.0.0.1"):
        self.ports, self.service, self.credential, self.source = ports, service, credential, source
        self.socket, self.received, self.number = None, bytearray(), 0

    def call(self, method, params=None, seconds=30.0):
        """The result. Raises Refused or Lost."""
        self.number += 1
        return self.send(line(method, params, self.number), self.number, seconds)

    def send(self, data, number=1, seconds=30.0):
        """Sends the line of one request with this id. Returns its result; raises Refused or Lost."""
        deadline = time.monotonic() + seconds
        try:
            self._open(deadline)
            return self._exchange(data, number, deadline)
        except (OSError, EOFError) as error:
            self.close()
            raise Lost(str(error)) from error

    def listen(self, params, seconds=30.0):
        """Listens until the first event, then unlistens. Returns the seconds until the event; raises Refused or Lost."""
        begin = time.monotonic()
        deadline = begin + seconds
        try:
            self._open(deadline)
            result = self._exchange(line("messages.listen", params), 1, deadline)
            # Events come after the response.
            while (message := json.loads(self._line(deadline))).get("method") != "messages.event":
                if message.get("method") == "messages.cancelled":
                    raise EOFError(message["params"]["reason"])
            seconds = time.monotonic() - begin
            self._exchange(line("messages.unlisten", {"subscription": result["subscription"]}), 1, deadline)
            return seconds
        except (OSError, EOFError) as error:
            self.close()
            raise Lost(str(error)) from error

    def _open(self, deadline):
        if self.socket is not None:
            return
        self.socket = socket.create_connection(
            self.ports.address(self.service), timeout=max(0.01, deadline - time.monotonic()),
            source_address=(self.source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.credential is not None:
            self._exchange(line("session.authenticate", {"auth": self.credential}, "auth"), "auth", deadline)

    def _exchange(self, data, number, deadline):
        self._limit(deadline)
        self.socket.sendall(data)
        while True:
            response = json.loads(self._line(deadline))
            if response.get("id") == number:
                break
            if "error" in response and response.get("id") is None:
                raise EOFError(str(Refused(response["error"])))
        if "error" in response:
            raise Refused(response["error"])
        return response["result"]

    def _line(self, deadline):
        searched = 0
        while True:
            end = self.received.find(b"\n", searched)
            if end >= 0:
                text = bytes(self.received[:end])
                del self.received[:end + 1]
                return text
            searched = len(self.received)
            self._limit(deadline)
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError("the connection was closed")
            self.received += data

    def _limit(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no response in time")
        self.socket.settimeout(left)

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.socket, self.received = None, bytearray()
