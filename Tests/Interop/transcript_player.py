"""Plays a transcript of Tests/Integration/Gateway/Transcripts: GatewayTranscripts.swift says what a step is."""

import asyncio
import json
import re

import httpx
import websockets.exceptions
from websockets.asyncio.client import connect

from gateway_stack import ADMIN_KEY, DEADLINE
from polls import Polls

HOLE = re.compile(r"<(uid|token)(?::(\w+))?>|<session:(\w+)>|<(admin|host)>|<(\d+)×(.)>")


def fits(value, expected):
    """Whether it is the expected value; "<any>" in that stands for any."""
    if expected == "<any>":
        return True
    if isinstance(expected, dict) and isinstance(value, dict):
        return value.keys() == expected.keys() and all(fits(value[name], expected[name]) for name in expected)
    if isinstance(expected, list) and isinstance(value, list):
        return len(value) == len(expected) and all(map(fits, value, expected))
    return value == expected and isinstance(value, bool) == isinstance(expected, bool)


class Player:
    def __init__(self, stack):
        self.stack, self.sockets, self.sessions, self.accounts = stack, {}, {}, {}

    def account(self, name):
        if name not in self.accounts:
            self.accounts[name] = self.stack.sign_up()
        return self.accounts[name]

    def filled(self, value):
        """The JSON text of a value with its holes filled."""
        def text(hole):
            kind, name, session, word, count, character = hole.groups()
            if session:
                return self.sessions[session]
            if word:
                return ADMIN_KEY if word == "admin" else self.stack.host
            if count:
                return int(count) * character
            account = self.account(name or "a")
            return account["uid" if kind == "uid" else "idToken"]

        return HOLE.sub(text, json.dumps(value, ensure_ascii=False, separators=(",", ":")))

    async def socket(self, step):
        name = step.get("socket", "a")
        if name not in self.sockets:
            self.sockets[name] = await self.connect(json.loads(self.filled(step.get("open", "/.ws?v=5&ns=hato"))))
            if step.get("hello", True):
                hello = await self.message(name)
                wanted = {"ts": "<any>", "v": "5", "h": self.stack.host, "s": "<any>"}
                self.check("the hello", hello, {"t": "c", "d": {"t": "h", "d": wanted}})
                self.sessions[name] = hello["d"]["d"]["s"]
        return name, self.sockets[name]

    async def connect(self, target):
        # Without compression, as the gateway declines it.
        return await connect(
            f"ws://{self.stack.host}{target}", max_size=1 << 26, additional_headers={"X-Firebase-GMPID": "1"})

    async def message(self, name, chunks=None):
        """The next message, or "closed"."""
        try:
            first = await asyncio.wait_for(self.sockets[name].recv(), DEADLINE)
            if not first.isdigit():
                parts = [first]
            else:
                parts = [await asyncio.wait_for(self.sockets[name].recv(), DEADLINE) for _ in range(int(first))]
        except websockets.exceptions.ConnectionClosed:
            del self.sockets[name]
            return "closed"
        if chunks is not None and len(parts) != chunks:
            raise AssertionError(f"{len(parts)} chunks instead of {chunks}")
        if len(parts) > 1 and not all(len(part) <= 16_384 for part in parts):
            raise AssertionError("a chunk is too long")
        return json.loads("".join(parts))

    def check(self, what, got, expected):
        wanted = json.loads(self.filled(expected))
        if not fits(got, wanted):
            raise AssertionError(f"{what}: {json.dumps(got, ensure_ascii=False)[:2000]} instead of "
                                 f"{json.dumps(wanted, ensure_ascii=False)[:2000]}")

    async def play(self, transcript):
        for name, rules in transcript.get("databases", {}).items():
            self.stack.call("messages", "messages.databases.create", database=name, rules=json.dumps(rules))
        try:
            for index, step in enumerate(transcript["steps"]):
                await self.step(f"step {index}", step)
        finally:
            for socket in self.sockets.values():
                await socket.close()

    async def step(self, what, step):
        if "request" in step:
            await self.request(what, step)
        elif "rules" in step:
            self.stack.call("messages", "messages.rules.set", rules=json.dumps(step["rules"]))
        elif "call" in step:
            params = json.loads(self.filled(step.get("params", {})))
            self.stack.call(step["call"].split(".")[0], step["call"], **params)
        elif "renew" in step:
            account = self.account(step["renew"])
            refreshed = self.stack.request("auth", "auth.refresh", refreshToken=account["refreshToken"])
            self.accounts[step["renew"]] = refreshed["result"]
        elif "restart" in step or "kill" in step:
            name = step.get("restart") or step["kill"]
            await asyncio.to_thread(self.stack.restart, name, "kill" in step)
        else:
            await self.on_socket(what, step)

    async def on_socket(self, what, step):
        name, socket = await self.socket(step)
        if "frame" in step:
            await socket.send(step["frame"])
        if "send" in step:
            text = self.filled(step["send"])
            size = step.get("chunk", len(text))
            chunks = [text[start:start + size] for start in range(0, len(text), size)]
            if len(chunks) > 1:
                await socket.send(str(len(chunks)))
            for chunk in chunks:
                await socket.send(chunk)
        if step.get("cut"):
            socket.transport.abort()
            del self.sockets[name]
        if step.get("close"):
            await socket.close()
            del self.sockets[name]
        if "expect" in step:
            self.check(what, await self.message(name, step.get("chunks")), step["expect"])
        if "expectInAnyOrder" in step:
            wanted = [json.loads(self.filled(message)) for message in step["expectInAnyOrder"]]
            for _ in step["expectInAnyOrder"]:
                got = await self.message(name)
                index = next((index for index, message in enumerate(wanted) if fits(got, message)), None)
                if index is None:
                    raise AssertionError(f"{what}: {got} is none of {wanted}")
                del wanted[index]
        if "expectPipelined" in step:
            await self.pipelined(what, name, json.loads(self.filled(step["expectPipelined"])))

    async def pipelined(self, what, name, expected):
        pushes = [push for messages in expected for push in messages[:-1]]
        responses, due = [messages[-1] for messages in expected], [len(messages) - 1 for messages in expected]
        pushed = responded = 0
        while responded < len(responses):
            got = await self.message(name)
            if pushed >= sum(due[:responded + 1]) and fits(got, responses[responded]):
                responded += 1
            elif pushed < len(pushes) and fits(got, pushes[pushed]):
                pushed += 1
            else:
                raise AssertionError(f"{what}: {got} after {pushed} pushes and {responded} responses")

    async def request(self, what, step):
        method, target = self.filled(step["request"])[1:-1].split(" ", 1)
        headers = json.loads(self.filled(step.get("headers", {})))
        body = self.filled(step["body"]) if "body" in step else None
        async with httpx.AsyncClient(timeout=DEADLINE) as client:
            response = await client.request(
                method, self.stack.url + target, headers=headers, content=body and body.encode())
        if response.status_code != step.get("status", 200):
            raise AssertionError(f"{what}: {response.status_code} {response.text[:500]}")
        if "response" in step:
            self.check(what, response.json(), step["response"])


class PollingPlayer(Player):
    """Plays a transcript over polls; with `switches`, sockets take over in the middle."""

    OF_SOCKETS = {"open", "frame", "chunk", "chunks", "hello", "restart", "kill"}

    def __init__(self, stack, switches):
        super().__init__(stack)
        self.switches, self.polls = switches, []

    @classmethod
    def plays(cls, transcript):
        """Whether its steps are the same over polls. Values of megabytes take too many of these."""
        steps = transcript["steps"]
        is_large = re.search(r"<\d{4,}×", json.dumps(steps, ensure_ascii=False))
        return not is_large and not any(cls.OF_SOCKETS & step.keys() for step in steps)

    async def connect(self, target):
        polls = await Polls(self.stack.host, self.switches).start(target.split("?")[1])
        self.polls.append(polls)
        return polls

    async def play(self, transcript):
        try:
            await super().play(transcript)
        finally:
            for polls in self.polls:
                await polls.client.aclose()
