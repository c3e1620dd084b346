"""A process of an attack: many connections of one event loop, which read nothing unless their function reads."""

import asyncio
import collections
import dataclasses
import os
import random
import re
import select
import signal
import socket
import time
import typing

from wire import line

HEAD_BYTES = 600
REASON = re.compile(rb'"reason":"([A-Za-z_]+)"')


@dataclasses.dataclass(frozen=True)
class Role:
    """A function that is run for each of so many connections, again and again."""

    function: typing.Callable
    connections: int
    accounts: int = 1
    first_account: int = 0
    payloads: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Attack:
    """`build` returns the bytes that all connections send; `prepare` sets data as administrator."""

    name: str
    roles: tuple
    build: typing.Callable = dict
    prepare: typing.Callable = lambda setup: None
    is_restless: bool = False

    def built(self):
        payloads = self.build()
        roles = tuple(dataclasses.replace(role, payloads=role.payloads or payloads) for role in self.roles)
        return dataclasses.replace(self, roles=roles)


class Link:
    """One connection of an attack."""

    def __init__(self, worker, role, number):
        self.worker, self.role, self.number = worker, role, number
        self.payloads, self.counts = role.payloads, worker.counts
        self.random = random.Random(f"{worker.seed} {role.function.__name__} {number}")
        self.token = worker.accounts[(role.first_account + number % role.accounts) % len(worker.accounts)]
        self.socket, self.received = None, bytearray()

    async def open(self, service="messages", receive_bytes=None, as_user=True, address=None):
        """Connects, from an address. Sends the credential, whose response stays unread."""
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        if address is not None:
            self.socket.bind((address, 0))
        await self.worker.loop.sock_connect(self.socket, self.worker.ports.address(service))
        self.counts["connections"] += 1
        if as_user:
            await self.send(line("session.authenticate", {"auth": self.token}, "auth"), count=0)

    async def send(self, data, count=1):
        await self.worker.loop.sock_sendall(self.socket, data)
        self.counts["requests sent"] += count

    def end_sending(self):
        self.socket.shutdown(socket.SHUT_WR)

    async def line(self):
        """Reads to the end of a line. Returns its first bytes, and counts it."""
        head = bytearray()
        while True:
            end = self.received.find(b"\n")
            head += self.received[:HEAD_BYTES - len(head) if end < 0 else min(end, HEAD_BYTES - len(head))]
            if end >= 0:
                del self.received[:end + 1]
                break
            self.received.clear()
            self.received += await self._receive()
        text = bytes(head)
        if b'"error"' in text:
            reason = REASON.search(text)
            self.counts["refused: " + (reason.group(1).decode() if reason else "?")] += 1
        elif b'"id":"auth"' not in text:
            self.counts["responses"] += 1
        return text

    async def lines(self, count):
        for _ in range(count):
            await self.line()

    async def drain(self):
        """Reads until the connection ends."""
        while True:
            self.counts["lines read"] += (await self._receive()).count(b"\n")

    async def parked(self, seconds):
        """Reads nothing until the server closes the connection, or so many seconds."""
        poll = select.poll()
        poll.register(self.socket, select.POLLRDHUP)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if poll.poll(0):
                raise EOFError
            await asyncio.sleep(0.25)

    async def _receive(self):
        data = await self.worker.loop.sock_recv(self.socket, 1 << 18)
        if not data:
            raise EOFError
        self.counts["MB read"] += len(data) / 1e6
        return data

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.socket = None
        self.received.clear()


class Worker:
    """The connections of one process: those whose number has the remainder `index`."""

    def __init__(self, attack, place, shared):
        self.attack, (self.index, self.processes) = attack, place
        self.ports, self.accounts, self.seed = shared.ports, shared.accounts, shared.seed
        self.counts = collections.Counter()
        self.loop = None

    async def run(self, end):
        self.loop = asyncio.get_running_loop()
        parent = os.getppid()
        tasks = [
            asyncio.create_task(self.repeat(Link(self, role, number)))
            for role in self.attack.roles for number in range(role.connections)
            if number % self.processes == self.index]
        while time.monotonic() < end.value and os.getppid() == parent:
            for task in tasks:
                # A mistake in an attack must not pass as a server that withstands it.
                if task.done():
                    task.result()
            await asyncio.sleep(0.1)

    async def repeat(self, link):
        while True:
            try:
                if self.attack.is_restless:
                    await asyncio.sleep(2 * link.random.random())
                    async with asyncio.timeout(1 + 14 * link.random.random()):
                        await link.role.function(link)
                else:
                    await link.role.function(link)
            except TimeoutError:
                pass
            except (OSError, EOFError):
                self.counts["closed or refused by the server"] += 1
                await asyncio.sleep(0.02)
            finally:
                link.close()
            await asyncio.sleep(0)


def work(attack, place, shared, end, results):
    """The body of a process of an attack. Sends its counts; the end of the process closes its connections."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A real attacker has processors of its own: these processes take as little from the server as possible.
    os.nice(10)
    worker = Worker(attack, place, shared)

    async def whole():
        try:
            await worker.run(end)
            results.send((dict(worker.counts), ""))
        except Exception as error:  # pylint: disable=broad-except
            results.send((dict(worker.counts), f"{type(error).__name__}: {error}"))
        # Cancelling thousands of tasks takes time in which no connection closes.
        os._exit(0)

    asyncio.run(whole())
