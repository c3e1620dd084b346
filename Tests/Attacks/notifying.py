"""Attacks with webhooks."""

import asyncio
import socket

from wire import Client, line
from worker import Attack, Role

ACCOUNTS = 33
DEVICES = 32
HOSTS = 64
PATH = "/shared/silent"
# Opened before the processes of the attack begin, which accept their connections.
LISTENERS = []
# The tasks of `hold`: an event loop has only weak references to its tasks.
HELD = set()


def silent_devices(setup):
    """Registers the webhooks, and sets a trigger for all of their users."""
    for number in range(HOSTS):
        LISTENERS.append(socket.create_server((f"127.0.1.{number + 1}", 0), backlog=512))
        LISTENERS[-1].setblocking(False)
    urls = [f"http://{host}:{port}" for host, port in (listener.getsockname() for listener in LISTENERS)]
    anonymous, uids = Client(setup.ports, "auth"), []
    for account in range(ACCOUNTS):
        session = anonymous.call("auth.signUp")
        uids.append(session["uid"])
        notifier = Client(setup.ports, "notifier", session["idToken"])
        for device in range(DEVICES):
            url = urls[(account * DEVICES + device) % HOSTS]
            notifier.call("notifier.devices.register", {"platform": "webhook", "url": f"{url}/{account}-{device}"})
        notifier.close()
    anonymous.close()
    setup.call("notifier", "notifier.triggers.set", {
        "id": "silent", "pattern": PATH + "/{id}", "on": ["created"], "recipients": {"uids": uids},
        "notification": {"title": "{after.text}"}})


async def silenthooks(link):
    """Webhooks of 33 accounts with 32 each, at 64 addresses, that accept connections and never respond."""
    while True:
        peer, _ = await link.worker.loop.sock_accept(LISTENERS[link.number % HOSTS])
        link.counts["webhooks accepted"] += 1
        task = asyncio.create_task(hold(link.worker.loop, peer))
        HELD.add(task)
        task.add_done_callback(HELD.discard)


async def hold(loop, peer):
    """Reads until the notifier closes the connection."""
    peer.setblocking(False)
    try:
        while await loop.sock_recv(peer, 1 << 16):
            pass
    except OSError:
        pass
    finally:
        peer.close()


async def silenthooks_wake(link):
    """Two writes a second that send a notification to each of them."""
    await link.open()
    await link.line()
    while True:
        await link.send(line("messages.push", {"path": PATH, "value": {"text": "s" * 200}}))
        await link.line()
        await asyncio.sleep(0.5)


ATTACKS = (
    Attack("silenthooks", (Role(silenthooks, HOSTS), Role(silenthooks_wake, 1)), prepare=silent_devices),
)
