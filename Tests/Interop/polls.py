"""A session over long polling (spec realtime-database §8.9) that looks like a socket of the library `websockets`."""

import asyncio
import base64
import json
import re

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

SEGMENT = 1_840
START = re.compile(r"^pLPCommand\('start','([^']+)','([^']+)'\);$", re.MULTILINE)
MESSAGES = re.compile(r"^pRTLPCB\((\d+),(.*)\);$", re.MULTILINE)
CLOSE = re.compile(r"^pLPCommand\('close'(?:,(\d+))?\);$", re.MULTILINE)
END = {"t": "c", "d": {"t": "n", "d": {}}}


class Polls:
    """One poll waits for messages at all times, and others bring data.

    With `switches`, a socket takes the session over behind the first message that is no hello.
    """

    def __init__(self, host, switches):
        self.host, self.switches = host, switches
        self.client = httpx.AsyncClient(base_url=f"http://{host}", timeout=60)
        # Of the next request, piece of data and response.
        self.serial, self.segment, self.number = 0, 0, 0
        # Responses that came before earlier ones, and the number of the last response.
        self.early, self.last = {}, None
        self.messages = asyncio.Queue()
        self.socket = self.session = self.failure = None
        self.ended = self.receives_on_socket = False
        self.transport = self

    async def start(self, parameters):
        script = await self.poll(f"start=t&cb=7&{parameters}")
        identity, password = START.search(script).groups()
        self.names = f"id={identity}&pw={password}&ns=hato"
        self.waiting = asyncio.create_task(self.wait())
        return self

    async def wait(self):
        try:
            while not self.ended:
                await self.poll(self.names)
        except Exception as error:
            self.failure = error
            self.end()

    async def poll(self, query):
        self.serial += 1
        response = await self.client.get(f"/.lp?{query}&ser={self.serial}")
        if response.status_code != 200 or response.headers["content-type"] != "application/javascript; charset=utf-8":
            raise AssertionError(f"{response.status_code} {response.text[:500]}")
        for number, messages in MESSAGES.findall(response.text):
            self.early[int(number)] = json.loads(messages)
        while self.number in self.early:
            for message in self.early.pop(self.number):
                self.messages.put_nowait(message)
            self.number += 1
        close = CLOSE.search(response.text)
        if close:
            self.last = int(close[1] or -1)
        if self.last is not None and self.number > self.last:
            self.end()
        return response.text

    def end(self):
        self.ended = True
        self.messages.put_nowait(None)

    async def send(self, text):
        if self.socket:
            return await self.socket.send(text)
        data = base64.urlsafe_b64encode(text.encode()).decode().replace("=", ".")
        pieces = [data[start:start + SEGMENT] for start in range(0, len(data), SEGMENT)]
        query = self.names
        for index, piece in enumerate(pieces):
            query += f"&seg{index}={self.segment}&ts{index}={len(pieces)}&d{index}={piece}"
            self.segment += 1
        await self.poll(query)

    async def recv(self):
        if self.receives_on_socket:
            return await self.socket.recv()
        message = await self.messages.get()
        if message is None:
            raise self.failure or ConnectionClosedError(None, None)
        if message == END and self.socket:
            self.receives_on_socket = True
            return await self.recv()
        if self.session is None:
            self.session = message["d"]["d"]["s"]
        elif self.switches and not self.socket:
            await self.switch()
        return json.dumps(message)

    async def switch(self):
        socket = await connect(f"ws://{self.host}/.ws?v=5&ns=hato&s={self.session}", max_size=1 << 26)

        async def expect(kind):
            message = json.loads(await socket.recv())
            if message["t"] != "c" or message["d"]["t"] != kind:
                raise AssertionError(f"{message} instead of {kind}")

        await expect("a")
        for _ in range(2):
            await socket.send(json.dumps({"t": "c", "d": {"t": "p", "d": {}}}))
            await expect("o")
        await socket.send(json.dumps({"t": "c", "d": {"t": "a", "d": {}}}))
        await self.send(json.dumps(END))
        self.socket = socket

    def abort(self):
        self.ended = True
        self.waiting.cancel()
        if self.socket:
            self.socket.transport.abort()

    async def close(self):
        if not self.ended and not self.socket:
            await self.client.get(f"/.lp?disconn=t&{self.names}")
        self.abort()
