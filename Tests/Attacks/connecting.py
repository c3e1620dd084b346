"""Attacks with many connections: unfinished lines, wrong passwords, batches without a credential."""

import asyncio

from values import MIB
from wire import batch, line, request, set_line
from worker import Attack, Role

WITHOUT_CREDENTIAL_BYTES = 64 << 10
VICTIMS = 20


async def halflines(link):
    """2,000 connections without a credential that each send an unfinished line slowly, of up to 64 KiB and more."""
    await link.open(as_user=False)
    size = link.random.randrange(WITHOUT_CREDENTIAL_BYTES // 8, WITHOUT_CREDENTIAL_BYTES * 9 // 8)
    await unfinished(link, size, step=4 << 10, pause=1.0)


async def halflines_users(link):
    """100 connections with a credential that each send an unfinished line of up to 16 MiB slowly."""
    await link.open()
    await link.line()
    await unfinished(link, link.random.randrange(MIB, 16 * MIB), step=128 << 10, pause=0.4)


async def unfinished(link, size, step, pause):
    """Sends `size` bytes of a line in steps, and then waits."""
    data = memoryview(link.payloads["line"])[:size]
    while data:
        await link.send(data[:step], count=0)
        data = data[step:]
        await asyncio.sleep(pause * link.random.random())
    link.counts["unfinished lines sent"] += 1
    await link.parked(10)


def halflines_bytes():
    return {"line": set_line("/shared/half", '"' + "h" * (16 * MIB) + '"')}


async def signins(link):
    """Sign-ins with wrong passwords from 200 connections, four at a time each; every third of an unknown account."""
    await link.open("auth", as_user=False)
    while True:
        chosen = link.random.choices(link.payloads["signins"], k=4)
        await link.send(b"".join(chosen), count=4)
        await link.lines(4)


def victim(number):
    return {"email": f"victim-{number}@example.com", "password": f"the right password {number}"}


def signins_bytes():
    known = [{**victim(number), "password": "a wrong password"} for number in range(VICTIMS)]
    unknown = [{"email": f"unknown-{number}@example.com", "password": "a wrong password"}
               for number in range(VICTIMS // 2)]
    return {"signins": [line("auth.signIn", parameters) for parameters in known + unknown]}


def signins_accounts(setup):
    for number in range(VICTIMS):
        setup.call("auth", "auth.users.create", victim(number))


async def batches(link):
    """200 connections without a credential with batches of rpc.discover, whose responses they do not read."""
    service = ("auth", "notifier")[link.number // 6 % 2] if link.number % 6 == 0 else "messages"
    await link.open(service, receive_bytes=16_384, as_user=False)
    for _ in range(4):
        await asyncio.wait_for(link.send(link.payloads["batch"], count=1_000), 20)
    await link.parked(5 + 25 * link.random.random())


def batches_bytes():
    discover = request("rpc.discover").replace(',"params":{}', "")
    return {"batch": batch(*[discover] * 1_000)}


ATTACKS = (
    Attack("halflines", (Role(halflines, 2_000), Role(halflines_users, 100, accounts=24)), halflines_bytes),
    Attack("signins", (Role(signins, 200),), signins_bytes, signins_accounts),
    Attack("batches", (Role(batches, 200),), batches_bytes),
)
