"""Attacks that request large responses and do not read them, or not to their end."""

import asyncio

from values import MIB, text
from wire import batch, line, request, set_line
from worker import Attack, Role

BIG, MIDDLE, PUBLIC = "/shared/big", "/shared/middle", "/pub/big"


async def batchclose(link):
    """A batch of 300 gets of 14 MiB (every third: of 1 MiB), closed at once, within 1 s or after one response."""
    await link.open()
    await link.send(link.payloads["middle" if link.number % 3 == 2 else "big"])
    choice = link.random.randrange(3)
    if choice == 1:
        await asyncio.sleep(link.random.random())
    elif choice == 2:
        # The response to the credential, and that to the batch.
        await link.lines(2)


def batchclose_bytes():
    return {name: batch(*[request("messages.get", {"path": path})] * 300)
            for name, path in (("big", BIG), ("middle", MIDDLE))}


async def parkbig(link):
    """Batches of two gets of 14 MiB and a set of 8 MiB; nothing is read."""
    await link.open(receive_bytes=16_384)
    for _ in range(4):
        await asyncio.wait_for(link.send(link.payloads[link.number % 2]), 20)
    await link.parked(5 + 25 * link.random.random())


def parkbig_bytes():
    gets = [request("messages.get", {"path": path}) for path in (BIG, BIG)]
    sets = [set_line(f"/shared/parked/{number}", "[" + ",".join([text(MIB)] * 8) + "]") for number in range(2)]
    return {number: batch(*gets, sets[number].decode().rstrip()) for number in range(2)}


async def hold(link):
    """16 pipelined gets of 14 MiB; nothing is read."""
    await link.open(receive_bytes=16_384)
    await link.send(link.payloads["gets"], count=16)
    await link.parked(5 + 25 * link.random.random())


def gets_bytes():
    return {"gets": line("messages.get", {"path": BIG}) * 16, "public": line("messages.get", {"path": PUBLIC}) * 16}


async def connectloop(link):
    """Connects, pipelines 16 gets of 14 MiB and closes; every second connection without a credential."""
    as_user = link.number % 2 == 0
    await link.open(as_user=as_user)
    await link.send(link.payloads["gets" if as_user else "public"], count=16)


async def hugeids(link):
    """Batches of 1,000 requests with ids of 14 kB, which the responses repeat; nothing is read."""
    await link.open(receive_bytes=16_384)
    for _ in range(3):
        await asyncio.wait_for(link.send(link.payloads[link.number % 2], count=1_000), 8)
    await link.parked(3)


def hugeids_bytes():
    methods = ("messages.get", "messages.none")
    return {number: batch(*[request(method, {"path": "/shared/x"}, "i" * 14_000)] * 1_000)
            for number, method in enumerate(methods)}


async def halfclosed(link):
    """From 200 addresses, 16 gets of 1 MiB to 14 MiB; the connection sends no more and reads nothing."""
    await link.open(receive_bytes=4_096, address=f"127.2.0.{1 + link.number % 200}")
    paths = [link.random.choice(("big", "middle", "public")) for _ in range(16)]
    await link.send(b"".join(link.payloads[path] for path in paths), count=16)
    link.end_sending()
    await link.parked(3 + 20 * link.random.random())


def sizes_bytes():
    return {name: line("messages.get", {"path": path})
            for name, path in (("big", BIG), ("middle", MIDDLE), ("public", PUBLIC))}


ATTACKS = (
    Attack("batchclose", (Role(batchclose, 72, accounts=24),), batchclose_bytes),
    Attack("parkbig", (Role(parkbig, 192, accounts=24),), parkbig_bytes),
    Attack("hold", (Role(hold, 96, accounts=24),), gets_bytes),
    Attack("halfclosed", (Role(halfclosed, 600, accounts=60),), sizes_bytes),
    Attack("connectloop", (Role(connectloop, 24, accounts=24),), gets_bytes),
    Attack("hugeids", (Role(hugeids, 60, accounts=24),), hugeids_bytes),
)
