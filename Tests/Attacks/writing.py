"""Attacks that write: large values, values that trigger conditions read, and conditional writes."""

import asyncio

from reading import BIG
from values import MIB, elements, members, nested, node, repeated, text
from wire import line, set_line
from worker import Attack, Role

KEPT = 270_000
STALE_ETAG = "2jmj7l5rSw0yVb/vlWAYkK/YBwk="


async def bigsets(link):
    """Sets of 14 to 15 MB: some 270,000 small members, some valid and some refused; the responses are read."""
    await link.open()
    await link.line()
    while True:
        await link.send(link.random.choice(link.payloads["sets"]))
        await link.line()


def bigsets_bytes():
    """At 400 MiB one write may have 273,066 values."""
    small = members(KEPT, 53)
    values = [
        small, elements(KEPT, 54),
        # Refused: too many values, in members and in what they contain.
        members(285_000, 51), "{" + ",".join(f'"o{number:06}":{{"a":[1,{{"b":"yyyyyyyyyyyyyyyyyyyy"}}]}}' for number in
                                             range(KEPT)) + "}",
        # Refused at its end: a key that is not allowed.
        small[:-1] + ',"a.b":1}',
        # Not JSON, which shows at its end.
        small[:-1] + ',"last":}',
    ]
    lines = [set_line(f"/shared/bigsets/{number}", value) for number, value in enumerate(values)]
    # The valid ones twice as often.
    return {"sets": lines + lines[:2]}


async def manysets(link):
    """Sets of 2 and 13 MB on 600 connections, each of an account of its own; the responses are read."""
    await link.open()
    await link.line()
    while True:
        await link.send(link.random.choice(link.payloads["sets"]))
        await link.line()


def manysets_bytes():
    return {"sets": [
        set_line("/shared/manysets/small", members(40_000, 53)), set_line("/shared/manysets/large", members(250_000, 53)),
        set_line("/shared/manysets/text", node(2)), set_line("/shared/manysets/texts", node(13))]}


async def latesets(link):
    """Sets of 900 kB whose last byte comes after 4.5 s, on 200 connections, each of an account of its own."""
    await link.open()
    await link.line()
    data = memoryview(link.payloads["set"])
    while True:
        await link.send(data[:-1], count=0)
        await asyncio.sleep(4.5)
        await link.send(data[-1:])
        await link.line()


def latesets_bytes():
    return {"set": set_line("/shared/latesets", '"' + "x" * 900_000 + '"')}


async def nulls(link):
    """Sets and pushes of arrays of nulls and of empty values, 1 and 8 to 14 MB, at paths that 20 triggers match."""
    await link.open()
    await link.line()
    while True:
        await link.send(link.random.choice(link.payloads["writes"]))
        await link.line()


def null_values():
    megabyte = 1_000_000
    for size in (megabyte, 8 * megabyte, 14 * megabyte):
        yield repeated("null", size)
        yield repeated("null", size, last="1")
    yield repeated("[]", megabyte, last="1")
    yield repeated("[]", 8 * megabyte)
    yield repeated("{}", 9 * megabyte, last="true")
    yield repeated(nested(24), megabyte, last='"end"')
    yield repeated(nested(24), 10 * megabyte)
    yield repeated('{"a":{},"b":[null]}', 12 * megabyte, last="1")
    for size in (megabyte, 8 * megabyte):
        half = repeated("null", size // 2, last="0")
        yield '{"a":%s,"b":%s,"text":"c"}' % (half, half)
    # Stored as a whole, so that the values before the next write are large as well.
    yield '{"a":%s,"text":%s}' % (members(20_000, 40), text(MIB // 8))
    yield '{"a":%s,"b":[null,%s],"text":"d"}' % (members(150_000, 40), text(2 * MIB))
    yield '{"text":%s,"a":[%s]}' % (text(MIB), ",".join([text(MIB)] * 10))
    yield "null"


def nulls_bytes():
    lines = []
    for number, value in enumerate(null_values()):
        lines.append(set_line(f"/shared/nulls/{number % 4}", value))
        lines.append(set_line(f"/shared/nulls/{number % 4}/{number % 3}", value))
        if number % 2 == 0:
            lines.append(set_line("/shared/nulls/pushed", value).replace(b'"messages.set"', b'"messages.push"'))
    return {"writes": lines}


CONDITIONS = (
    "after != before", "after.a != before.a", "after.text != before.text", "after.text.length > 1000000",
    "after.text.contains('yx')", "before.text.toUpperCase() == after.text.toUpperCase()",
    "after.a.m000001 == before.a.m000001 && after.b != null", "after['0'] == null && before['0'] != null",
    "after['199999'] == 1", "(after.text + before.text).length > 10",
)


def nulls_triggers(setup):
    """Ten conditions, each at two depths. The only recipient has no device."""
    for number, condition in enumerate(CONDITIONS):
        for depth, pattern in enumerate(("/shared/nulls/{a}", "/shared/nulls/{a}/{b}")):
            setup.call("notifier", "notifier.triggers.set", {
                "id": f"attack-{number}-{depth}", "pattern": pattern, "on": ["created", "updated", "deleted"],
                "recipients": {"uids": ["nobody-has-this-uid"]},
                "notification": {"title": "{path}", "body": "{after.text}"}, "when": condition})


async def ifversion(link):
    """Conditional sets and removes, most with stale conditions, and updates of the same paths; responses are read."""
    await link.open()
    await link.line()
    while True:
        chosen = link.random.choices(link.payloads["writes"], k=16)
        await link.send(b"".join(chosen), count=16)
        await link.lines(16)


def ifversion_bytes():
    paths = ["/shared/versions", "/shared/versions/a", "/shared/versions/a/b", "/shared/versions/a/b/c",
             "/shared/versions/z", BIG]
    lines = []
    for path in paths:
        # The large node only has stale conditions: it stays, and refusals contain its value.
        is_large = path == BIG
        for size in (10, 1_000, 100_000):
            value = "v" * size
            lines.append(line("messages.set", {"path": path, "value": value, "ifMatch": STALE_ETAG}))
            lines.append(line("messages.set", {"path": path, "value": {"b": {"c": value}}, "ifVersion": 1}))
            if is_large:
                break
            lines.append(line("messages.set", {"path": path, "value": {"b": value}, "ifVersion": 0}))
            lines.append(line("messages.set", {"path": path, "value": value, "ifVersion": 1 << 40}))
            for values in ({"a/b/c": value, "a/d": 1, "z": {"y": size}}, {"b": {"c": value}, f"k{size}": value}):
                lines.append(line("messages.update", {"path": path, "values": values}))
        lines.append(line("messages.remove", {"path": path, "ifMatch": STALE_ETAG}))
    return {"writes": lines}


ATTACKS = (
    Attack("bigsets", (Role(bigsets, 24, accounts=24),), bigsets_bytes),
    Attack("manysets", (Role(manysets, 600, accounts=600),), manysets_bytes),
    Attack("latesets", (Role(latesets, 200, accounts=200),), latesets_bytes),
    Attack("nulls", (Role(nulls, 40, accounts=24),), nulls_bytes, nulls_triggers),
    Attack("ifversion", (Role(ifversion, 16, accounts=16),), ifversion_bytes),
)
