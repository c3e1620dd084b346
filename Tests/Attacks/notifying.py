"""Attacks with webhooks, and with the recipients of triggers."""

import asyncio
import random
import socket

from wire import Client, line, set_line
from worker import Attack, Role

ACCOUNTS = 33
ODD_ACCOUNTS = 20
DEVICES = 32
HOSTS = 64
# Opened before the processes of an attack begin, which accept their connections.
LISTENERS = {"silent": [], "odd": []}
# The tasks of accepted connections: an event loop has only weak references to its tasks.
HELD = set()
ROOMS = 4
MEMBERS = 90_000


def hostile_devices(setup, name, accounts):
    """Registers the webhooks of so many accounts, and sets a trigger for all of these."""
    listeners = LISTENERS[name]
    for number in range(HOSTS):
        listeners.append(socket.create_server((f"127.0.1.{number + 1}", 0), backlog=512))
        listeners[-1].setblocking(False)
    urls = [f"http://{host}:{port}" for host, port in (listener.getsockname() for listener in listeners)]
    anonymous, uids = Client(setup.ports, "auth"), []
    for account in range(accounts):
        session = anonymous.call("auth.signUp")
        uids.append(session["uid"])
        notifier = Client(setup.ports, "notifier", session["idToken"])
        for device in range(DEVICES):
            url = urls[(account * DEVICES + device) % HOSTS]
            notifier.call("notifier.devices.register", {"platform": "webhook", "url": f"{url}/{account}-{device}"})
        notifier.close()
    anonymous.close()
    setup.call("notifier", "notifier.triggers.set", {
        "id": name, "pattern": f"/shared/{name}/{{id}}", "on": ["created"], "recipients": {"uids": uids},
        "notification": {"title": "{after.text}"}})


async def accepted(link, name, handle):
    """Passes each connection to a webhook on to `handle`, as a task of its own."""
    while True:
        peer, _ = await link.worker.loop.sock_accept(LISTENERS[name][link.number % HOSTS])
        link.counts["webhooks accepted"] += 1
        task = asyncio.create_task(held(link, peer, handle))
        HELD.add(task)
        task.add_done_callback(HELD.discard)


async def held(link, peer, handle):
    """Lets `handle` have a connection until the notifier closes it."""
    peer.setblocking(False)
    try:
        await handle(link, peer)
    except OSError:
        pass
    finally:
        peer.close()


async def wake(link, name):
    """Two writes a second that send a notification to each webhook."""
    await link.open()
    await link.line()
    while True:
        await link.send(line("messages.push", {"path": f"/shared/{name}", "value": {"text": "s" * 200}}))
        await link.line()
        await asyncio.sleep(0.5)


async def silenthooks(link):
    """Webhooks of 33 accounts with 32 each, at 64 addresses, that accept connections and never respond."""
    await accepted(link, "silent", silent)


async def silent(link, peer):
    """Reads until the notifier closes the connection."""
    while await link.worker.loop.sock_recv(peer, 1 << 16):
        pass


async def silenthooks_wake(link):
    """Two writes a second that send a notification to each of them."""
    await wake(link, "silent")


async def oddhooks(link):
    """Webhooks of 20 accounts with 32 each that drip responses, send headers or bodies without end, or redirect."""
    await accepted(link, "odd", KINDS[link.number % HOSTS % len(KINDS)])


async def oddhooks_wake(link):
    """Two writes a second that send a notification to each of them."""
    await wake(link, "odd")


async def dripping(link, peer):
    """A byte of a response every tenth of a second."""
    await request_read(link, peer)
    text = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\nx-slow: " + b"s" * 600 + b"\r\n\r\n" + b"b" * 1_000
    for index in range(len(text)):
        await link.worker.loop.sock_sendall(peer, text[index:index + 1])
        await asyncio.sleep(0.1)


async def dripping_body(link, peer):
    """A status at once, and a byte of the body every tenth of a second."""
    await request_read(link, peer)
    await link.worker.loop.sock_sendall(peer, b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    for _ in range(1_000):
        await link.worker.loop.sock_sendall(peer, b"b")
        await asyncio.sleep(0.1)


async def endless_headers(link, peer):
    """Header fields for ever."""
    await request_read(link, peer)
    await endless(link, peer, b"HTTP/1.1 200 OK\r\n", b"x-more: " + b"h" * 1_000 + b"\r\n")


async def endless_interim(link, peer):
    """Interim responses for ever."""
    await request_read(link, peer)
    await endless(link, peer, b"", b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 20)


async def endless_body(link, peer):
    """A body in chunks for ever."""
    await request_read(link, peer)
    await endless(link, peer, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
                  b"400\r\n" + b"b" * 1_024 + b"\r\n")


async def endless(link, peer, head, part):
    await link.worker.loop.sock_sendall(peer, head)
    while True:
        await link.worker.loop.sock_sendall(peer, part)
        # The processor is for the server.
        await asyncio.sleep(0.005)


async def redirecting(link, peer):
    """Another redirect for each request."""
    while await link.worker.loop.sock_recv(peer, 1 << 16):
        host, port = peer.getsockname()
        await link.worker.loop.sock_sendall(
            peer, f"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{host}:{port}/again\r\n"
            "content-length: 0\r\n\r\n".encode())


async def request_read(link, peer):
    """Reads the beginning of a request."""
    if not await link.worker.loop.sock_recv(peer, 1 << 16):
        raise ConnectionError


KINDS = (dripping, dripping_body, endless_headers, endless_interim, endless_body, redirecting)


def wide_rooms(setup):
    """Sets a trigger whose recipients are the children of a node, and some such nodes with 90,000 keys."""
    generator = random.Random(setup.seed)
    for room in range(ROOMS):
        value = "{" + ",".join(f'"{generator.getrandbits(112):028x}":true' for _ in range(MEMBERS)) + "}"
        setup.clients["messages"].send(set_line(f"/shared/wide{room}/members", value), seconds=60)
    rooms_trigger(setup, "wide", "/shared/{room}/wide/{id}")


def rooms_trigger(setup, name, pattern):
    setup.call("notifier", "notifier.triggers.set", {
        "id": name, "pattern": pattern, "on": ["created"], "recipients": {"uidsAt": "/shared/{room}/members"},
        "notification": {"title": "{after.n}"}})


async def widelists(link):
    """Messages in four rooms with 90,000 members each, which are the recipients of a trigger."""
    await post_in_rooms(link, "wide")


def shared_trigger(setup):
    """The same, and the honest user's room has the same trigger."""
    wide_rooms(setup)
    setup.call("messages", "messages.set", {"path": "/shared/honest/members", "value": {setup.honest_uid: True}})
    setup.honest_recipients = {"uidsAt": "/shared/{room}/members"}
    setup.honest_pattern = "/shared/{room}/notified/{id}"


async def widerooms(link):
    """The same messages, where the honest user is in another room of the same trigger."""
    await post_in_rooms(link, "notified")


async def post_in_rooms(link, name):
    """Twenty messages a second for each room."""
    await link.open()
    await link.line()
    number = 0
    while True:
        number += 1
        await link.send(line("messages.push", {
            "path": f"/shared/wide{link.number % ROOMS}/{name}", "value": {"n": number}}))
        await link.line()
        await asyncio.sleep(0.05)


ATTACKS = (
    Attack("silenthooks", (Role(silenthooks, HOSTS), Role(silenthooks_wake, 1)),
           prepare=lambda setup: hostile_devices(setup, "silent", ACCOUNTS)),
    Attack("oddhooks", (Role(oddhooks, HOSTS), Role(oddhooks_wake, 1)),
           prepare=lambda setup: hostile_devices(setup, "odd", ODD_ACCOUNTS)),
    Attack("widelists", (Role(widelists, ROOMS),), prepare=wide_rooms),
    Attack("widerooms", (Role(widerooms, ROOMS),), prepare=shared_trigger),
)
