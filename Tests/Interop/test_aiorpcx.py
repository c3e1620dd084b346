"""aiorpcX, an independent JSON-RPC 2.0 implementation, against every service."""

import asyncio
import unittest

import aiorpcx

from stack import Stack

DEADLINE = 30


class ListeningSession(aiorpcx.RPCSession):
    """Keeps the notifications that the server sends."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.notifications = asyncio.Queue()

    async def handle_request(self, request):
        await self.notifications.put((request.method, request.args))


class AiorpcXTest(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = Stack().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.stack.__exit__()

    def connect(self, service):
        host, port = self.stack.address(service)
        return aiorpcx.connect_rs(host, port, session_factory=ListeningSession)

    async def user(self):
        async with self.connect("auth") as session:
            answer = await session.send_request("auth.signUp", {})
            return answer["uid"], answer["idToken"]

    async def test_every_service_answers_health_and_discover(self):
        for service in ("auth", "messages", "notifier"):
            async with self.connect(service) as session:
                health = await session.send_request("service.health", {})
                self.assertEqual(health["service"], service)
                document = await session.send_request("rpc.discover")
                names = [method["name"] for method in document["methods"]]
                self.assertIn("service.health", names)
                self.assertEqual(len(names), len(set(names)))

    async def test_a_push_is_read_back_and_heard(self):
        uid, token = await self.user()
        path = f"/users/{uid}/messages"
        async with self.connect("messages") as listener, self.connect("messages") as writer:
            for session in (listener, writer):
                identity = await session.send_request("session.authenticate", {"auth": token})
                self.assertEqual(identity["uid"], uid)
            answer = await listener.send_request("messages.listen", {"path": path})
            method, first = await asyncio.wait_for(listener.notifications.get(), DEADLINE)
            self.assertEqual(method, "messages.event")
            self.assertEqual(first["subscription"], answer["subscription"])
            self.assertEqual(first["events"], [{"type": "put", "path": "/", "data": None}])
            value = {"date": 1, "senderId": uid, "text": "ただいま 🕊"}
            pushed = await writer.send_request("messages.push", {"path": path, "value": value})
            method, event = await asyncio.wait_for(listener.notifications.get(), DEADLINE)
            self.assertEqual(event["version"], pushed["version"])
            self.assertEqual(event["events"], [{"type": "put", "path": "/" + pushed["key"], "data": value}])
            query = {"orderBy": "date", "limitToLast": 1}
            newest = await writer.send_request("messages.get", {"path": path, "query": query})
            self.assertEqual(newest["value"], {pushed["key"]: value})

    async def test_a_batch_is_answered_in_one(self):
        async with self.connect("messages") as session:
            async with session.send_batch() as batch:
                batch.add_request("service.health", {})
                batch.add_request("messages.nothing", {})
                batch.add_notification("service.health", {})
            health, error = batch.results
            self.assertEqual(health["service"], "messages")
            self.assertIsInstance(error, aiorpcx.RPCError)
            self.assertEqual(error.code, -32601)

    async def test_errors_keep_their_codes(self):
        async with self.connect("messages") as session:
            for method, params, code in (
                ("messages.get", {"path": "/"}, -32002),
                ("messages.get", {"path": "/", "auth": "no.such.token"}, -32001),
                ("messages.get", {}, -32602),
                ("messages.get", {"path": "/", "typo": 1}, -32602),
                ("messages.get", ["/"], -32602),
                ("messages.get", {"path": "/a.b"}, -32008),
                ("messages.stats", {}, -32001),
            ):
                with self.assertRaises(aiorpcx.RPCError, msg=f"{method} {params}") as caught:
                    await session.send_request(method, params)
                self.assertEqual(caught.exception.code, code, f"{method} {params}")
