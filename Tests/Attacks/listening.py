"""Attacks with listeners: many on paths that one update changes, and listeners that do not read."""

from values import node
from wire import line, set_line
from worker import Attack, Role

HEARD = "/shared/heard"
LISTENERS = 3_000
UPDATED = 4_000


def deep_path(number):
    return f"a{number % 40}/b{number // 40 % 10}/c{number // 400}/d"


async def fanpaths(link):
    """12 connections with 3,000 listeners each on /pub/fp and paths below it, which read their events."""
    await link.open()
    await link.send(link.payloads["listens"], count=LISTENERS)
    await link.drain()


async def fanpaths_updates(link):
    """Updates of 4,000 deep paths below /pub/fp; the responses are read."""
    await link.open()
    await link.line()
    while True:
        await link.send(link.random.choice(link.payloads["updates"]))
        await link.line()


def fanpaths_bytes():
    listens = []
    for number in range(LISTENERS):
        # Some on the whole, some on nodes in the middle, most on a leaf.
        keys = deep_path(number).split("/")
        depth = 0 if number % 100 == 0 else 1 if number % 20 == 0 else 2 if number % 5 == 0 else 4
        path = "/".join(["/pub/fp", *keys[:depth]])
        listens.append(line("messages.listen", {"path": path}, number + 1))
    updates = [
        line("messages.update", {"path": "/pub/fp", "values": {
            f"{deep_path(number)}/e{number % 3}": f"{turn}-{number}" for number in range(UPDATED)}})
        for turn in range(4)]
    return {"listens": b"".join(listens), "updates": updates}


async def listenunread(link):
    """300 listeners that do not read, on a node of which 15 MiB are updated again and again."""
    await link.open(receive_bytes=16_384)
    await link.send(link.payloads["listen"])
    await link.parked(3_600)


async def listenunread_updates(link):
    """Sets and updates of 15 MiB; the responses are read."""
    await link.open()
    await link.line()
    while True:
        await link.send(link.payloads["writes"][link.random.randrange(2)])
        await link.line()


def listenunread_bytes():
    value = node(15)
    update = line("messages.update", {"path": HEARD, "values": 0}).replace(
        b'"values":0', b'"values":' + value.replace("x", "y").encode())
    return {"listen": line("messages.listen", {"path": HEARD}), "writes": [set_line(HEARD, value), update]}


ATTACKS = (
    Attack("fanpaths", (
        Role(fanpaths, 12, accounts=12), Role(fanpaths_updates, 4, accounts=4, first_account=12)), fanpaths_bytes),
    Attack("listenunread", (
        Role(listenunread, 300, accounts=20), Role(listenunread_updates, 4, accounts=4, first_account=20)),
        listenunread_bytes),
)
