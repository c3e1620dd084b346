"""Attacks with queries for which the rules have no index."""

import asyncio

from wire import batch, line, request, set_line
from worker import Attack, Role

MANY = "/shared/many"
CHILDREN = 100_000


def many_children(setup):
    """Sets a node of 100,000 small children."""
    value = "{" + ",".join(f'"k{number:06}":{{"date":{number}}}' for number in range(CHILDREN)) + "}"
    setup.clients["messages"].send(set_line(MANY, value), seconds=60)


def query(number):
    return {"path": MANY, "query": {"orderBy": "date", "startAt": number}}


async def unindexed(link):
    """200 listens without an index on a node of 100,000 children, each with another start; nothing is read."""
    await link.open(receive_bytes=16_384)
    first = link.random.randrange(CHILDREN - 200)
    lines = [line("messages.listen", query(first + number), number + 1) for number in range(200)]
    await link.send(b"".join(lines), count=200)
    await link.parked(3 + 5 * link.random.random())


async def unindexed_updates(link):
    """Updates of 20 children of that node; the responses are read."""
    await link.open()
    await link.line()
    while True:
        values = {f"k{link.random.randrange(CHILDREN):06}/date": link.random.randrange(CHILDREN) for _ in range(20)}
        await link.send(line("messages.update", {"path": MANY, "values": values}))
        await link.line()
        await asyncio.sleep(0.05)


async def mixedbatches(link):
    """Batches of 100 gets, listens without an index, sets and onDisconnect writes; a third of the peers do not read."""
    await link.open(receive_bytes=16_384)
    calls = []
    for number in range(100):
        start = link.random.randrange(CHILDREN)
        calls.append(link.random.choice((
            request("messages.get", {"path": MANY}),
            request("messages.get", {"path": MANY, "etag": True}),
            request("messages.listen", query(start)),
            request("messages.set", {"path": f"/shared/mixed/{start}", "value": number}),
            request("messages.onDisconnect.set", {"path": f"/shared/mixed/{start}", "value": None}))))
    await link.send(batch(*calls), count=100)
    if link.number % 3 == 0:
        await link.parked(5)
    else:
        await asyncio.wait_for(link.lines(2), 20)


async def keyqueries(link):
    """Gets of 50,000 and more of 100,000 children in the order of their keys; the responses are read."""
    await link.open()
    await link.line()
    while True:
        limit = {link.random.choice(("limitToFirst", "limitToLast")): link.random.choice((50_000, 1_000_000))}
        await link.send(line("messages.get", {"path": MANY, "query": {"orderBy": "$key", **limit}}))
        await link.line()


ATTACKS = (
    Attack("unindexed", (
        Role(unindexed, 48, accounts=20), Role(unindexed_updates, 4, accounts=4, first_account=20)),
        prepare=many_children),
    Attack("keyqueries", (Role(keyqueries, 72, accounts=24),), prepare=many_children),
    Attack("mixedbatches", (Role(mixedbatches, 100, accounts=24),), prepare=many_children),
)
