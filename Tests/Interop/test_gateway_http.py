"""REST and event streams of the gateway with httpx and with raw bytes: methods, parameters, errors, conditions, HTTP."""

import asyncio
import json
import socket
import time
import unittest
import uuid
from urllib.parse import quote

import httpx

from gateway_stack import ADMIN_KEY, DEADLINE, GatewayStack

RULES = {"rules": {
    "public": {".read": True, ".write": True, "list": {".indexOn": ["n", ".value"]}},
    "users": {"$uid": {".read": "auth.uid === $uid", ".write": "auth.uid === $uid"}},
}}
ADMIN = {"Authorization": f"Bearer {ADMIN_KEY}"}
LIST = {"a": {"n": 1}, "b": {"n": 3}, "c": {"n": 3}, "d": {"n": 5}, "e": {"x": 1}}
KEY_ERROR = "Invalid data; couldn't parse key beginning at {}. Key value can't be empty or contain $ # [ ] / or ."
ETAG = {"X-Firebase-ETag": "true"}


class GatewayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = cls.enterClassContext(GatewayStack(RULES, ["--keep-alive-ms", "300"]))
        cls.client = cls.enterClassContext(httpx.Client(base_url=cls.stack.url, timeout=DEADLINE))
        cls.user = cls.stack.sign_up()

    def setUp(self):
        self.path = f"/public/{uuid.uuid4().hex}"

    def put(self, path, value):
        self.assertEqual(self.client.put(f"{path}.json", json=value).status_code, 200)

    def check(self, response, status, value=None):
        self.assertEqual(response.status_code, status, response.text)
        if status >= 400 and isinstance(value, str):
            value = {"error": value}
        if value is not None:
            self.assertEqual(response.json(), value)
        return response


class RESTTest(GatewayTest):
    def test_methods(self):
        url = f"{self.path}.json"
        self.check(self.client.get(url), 200).json()
        self.assertEqual(self.client.get(url).text, "null")
        value = {"name": "マスオ", "n": 1, "list": [1, None, 2]}
        self.check(self.client.put(url, json=value), 200)
        self.check(self.client.get(url), 200, value)
        pushed = self.check(self.client.post(url, json="おかえり"), 200).json()["name"]
        self.assertEqual(len(pushed), 20)
        self.check(self.client.get(f"{self.path}/{pushed}.json"), 200, "おかえり")
        self.check(self.client.patch(url, json={"n": 2, "a/b": True, "list": None}), 200)
        self.check(self.client.get(url), 200, {"name": "マスオ", "n": 2, "a": {"b": True}, pushed: "おかえり"})
        deleted = self.check(self.client.delete(url), 200)
        self.assertEqual((deleted.text, self.client.get(url).text), ("null", "null"))
        self.check(self.client.put(f"{self.path}/.json", json=5), 200, 5)
        self.check(self.client.request("TRACE", url), 405)

    def test_headers(self):
        response = self.client.get(f"{self.path}.json")
        self.assertEqual(response.headers["content-type"], "application/json; charset=utf-8")
        self.assertEqual(response.headers["access-control-allow-origin"], "*")
        self.assertEqual(response.headers["cache-control"], "no-cache")
        preflight = self.client.options(f"{self.path}.json", headers={
            "Origin": "https://chat.example.com", "Access-Control-Request-Method": "PATCH",
            "Access-Control-Request-Headers": "x-firebase-etag"})
        self.assertIn(preflight.status_code, (200, 204))
        self.assertIn("PATCH", preflight.headers["access-control-allow-methods"])
        self.assertIn("x-firebase-etag", preflight.headers["access-control-allow-headers"].lower())

    def test_head_is_a_get_without_body(self):
        self.put(self.path, "長い" * 1000)
        for headers in ({}, {"Accept-Encoding": "gzip"}, {"Accept-Encoding": "identity"}):
            got = self.client.get(f"{self.path}.json", headers={"Accept-Encoding": "identity"})
            head = self.client.head(f"{self.path}.json", headers=headers)
            self.assertEqual((head.status_code, head.content), (200, b""))
            self.assertEqual(head.headers["content-length"], got.headers["content-length"])
        self.check(self.client.head("/users/other.json"), 401)

    def test_method_override(self):
        url = f"{self.path}.json"
        for method, body, value in (("PUT", {"n": 1}, {"n": 1}), ("PATCH", {"m": 2}, {"n": 1, "m": 2}), ("DELETE", None, None)):
            content = b"" if body is None else json.dumps(body).encode()
            self.check(self.client.post(url, headers={"X-HTTP-Method-Override": method}, content=content), 200)
            self.assertEqual(self.client.get(url).json(), value)

    def test_presentation(self):
        value = {"b": [1, 2], "a": "<あ>&'\u2028"}
        self.put(self.path, value)
        pretty = self.client.get(f"{self.path}.json?print=pretty")
        self.assertEqual(pretty.json(), value)
        self.assertIn("\n  ", pretty.text)
        silent = self.client.get(f"{self.path}.json?print=silent")
        self.assertEqual((silent.status_code, silent.content), (204, b""))
        self.check(self.client.put(f"{self.path}/c.json?print=silent", json=1), 204)
        shallow = self.client.get(f"{self.path}.json?shallow=true")
        self.check(shallow, 200, {"a": True, "b": True, "c": True})
        self.check(self.client.get(f"{self.path}/c.json?shallow=true"), 200, 1)
        named = self.client.get(f"{self.path}.json", params={"download": "家族.json"})
        self.assertIn("attachment", named.headers["content-disposition"])
        self.put(f"{self.path}/c/.priority", 7)
        self.check(self.client.get(f"{self.path}/c.json?format=export"), 200, {".value": 1, ".priority": 7})
        self.check(self.client.get(f"{self.path}/c/.priority.json"), 200, 7)

    def test_jsonp(self):
        self.put(self.path, {"a": "</script>\u2028"})
        response = self.client.get(f"{self.path}.json?callback=app.show")
        self.assertTrue(response.headers["content-type"].startswith("application/javascript"))
        self.assertTrue(response.text.startswith("app.show(") and response.text.rstrip().endswith(");"))
        self.assertEqual(json.loads(response.text.rstrip()[len("app.show("):-2]), {"a": "</script>\u2028"})
        self.assertNotIn("\u2028", response.text)
        for wrong in ("alert(1)//", "a b", "a;b", "<x>", "あ("):
            self.check(self.client.get(f"{self.path}.json", params={"callback": wrong}), 400)

    def test_credentials(self):
        url, token = f"/users/{self.user['uid']}/x.json", self.user["idToken"]
        self.check(self.client.put(url, json=1), 401, "Permission denied")
        self.check(self.client.put(url, params={"auth": token}, json="私"), 200)
        for credential in ({"params": {"auth": token}}, {"headers": {"Authorization": f"Bearer {token}"}},
                           {"params": {"access_token": ADMIN_KEY}}, {"headers": ADMIN}, {"params": {"auth": ADMIN_KEY}}):
            self.check(self.client.get(url, **credential), 200, "私")
        self.check(self.client.get(url, params={"auth": "no.token.here"}), 401, "Could not parse auth token.")
        other = self.stack.sign_up()
        self.check(self.client.get(url, params={"auth": other["idToken"]}), 401, "Permission denied")
        self.stack.call("auth", "auth.users.revoke", uid=other["uid"])
        deadline = time.monotonic() + DEADLINE
        while self.client.get(url, params={"auth": other["idToken"]}).json() != {"error": "Auth token is expired"}:
            self.assertLess(time.monotonic(), deadline)
        for variable, status in ((json.dumps({"uid": self.user["uid"]}), 200), ("null", 401), ('{"uid":"x"}', 401)):
            self.check(self.client.get(url, headers=ADMIN, params={"auth_variable_override": variable}), status)
        # Only an administrator may choose it.
        self.check(self.client.get(url, params={"auth": other["idToken"], "auth_variable_override": json.dumps(
            {"uid": self.user["uid"]})}), 401)
        self.check(self.client.get("/.settings/rules.json"), 401, "Unauthorized request.")

    def test_queries(self):
        self.put("/public/list", LIST)
        for query, keys in (
            ('orderBy="n"&limitToLast=1', "d"), ('orderBy="n"&limitToFirst=2', "ea"), ('orderBy="n"&startAt=3', "bcd"),
            ('orderBy="n"&startAfter=3', "d"), ('orderBy="n"&endAt=1', "ea"), ('orderBy="n"&endBefore=1', "e"),
            ('orderBy="n"&equalTo=3', "bc"), ('orderBy="n"&equalTo=3,"c"', "c"), ('orderBy="n"&startAt=3,"c"', "cd"),
            ('orderBy="n"&startAfter=3,"b"', "cd"), ('orderBy="n"&endBefore=3,"c"', "eab"), ('orderBy="n"&equalTo=null', "e"),
            ('orderBy="$key"&startAt="c"', "cde"), ('orderBy="$key"&limitToFirst=1', "a"), ('orderBy="$priority"', "abcde"),
            ('orderBy="$value"&limitToLast=2', "de"), ('orderBy="n"', "abcde"),
        ):
            with self.subTest(query):
                response = self.check(self.client.get(f"/public/list.json?{quote(query, safe='=&,')}"), 200)
                self.assertEqual(set(response.json()), set(keys))
                self.assertEqual(response.json(), {key: LIST[key] for key in keys})
        self.check(self.client.get('/public/none.json?orderBy="$key"&limitToLast=1'), 200, {})

    def test_wrong_queries(self):
        index = 'Index not defined, add ".indexOn": "y", for path "/public/list", to the rules'
        for query, words in (
            ("limitToLast=1", "orderBy must be defined when other query parameters are defined"),
            ("startAt=1", "orderBy must be defined when other query parameters are defined"),
            ("orderBy=n", "orderBy must be a valid JSON encoded path"), ("orderBy=7", "orderBy must be a valid JSON encoded path"),
            ('orderBy="n"&startAt={}', "Constraint index field must be a JSON primitive"),
            ('orderBy="n"&limitToFirst=x', "limitToFirst must be an integer"),
            ('orderBy="n"&limitToLast=1.5', "limitToLast must be an integer"),
            ('orderBy="n"&limitToFirst=0', "limitToFirst must be positive"),
            ('orderBy="n"&limitToLast=-1', "limitToLast must be positive"),
            ('orderBy="n"&limitToLast=1&limitToFirst=1', "Only one of limitToFirst and limitToLast may be specified"),
            ('orderBy="n"&equalTo=1&startAt=1',
             "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore"),
            ('orderBy="$key"&startAt=1', "Provided key index type is invalid, must be string"),
            ('orderBy="y"', index),
        ):
            with self.subTest(query):
                self.check(self.client.get(f"/public/list.json?{quote(query, safe='=&,')}"), 400, words)
        for query in ("shallow=true&orderBy=%22n%22", "timeout=16min", "timeout=x", "writeSizeLimit=huge", "print=x"):
            with self.subTest(query):
                self.check(self.client.put(f"/public/x.json?{query}", json=1) if "write" in query
                           else self.client.get(f"/public/list.json?{query}"), 400)

    def test_wrong_bodies_and_paths(self):
        url = f"{self.path}.json"
        for body, words in (
            ("", "Error: No data supplied."), ("{", "Invalid data; couldn't parse JSON object, array, or value."),
            ("undefined", "Invalid data; couldn't parse JSON object, array, or value."),
            ('{"a.b":1}', KEY_ERROR.format("1:2")), ('{\n  "a": 1,\n  "b/c": 2}', KEY_ERROR.format("3:3")),
            ('{"":1}', KEY_ERROR.format("1:2")),
        ):
            with self.subTest(body):
                self.check(self.client.put(url, content=body), 400, words)
        self.check(self.client.patch(url, json=[1]), 400, "Invalid data; couldn't parse JSON object. Are you sending a "
                   "JSON object with valid key names?")
        for path in ("/public/a.b.json", "/public/%24x.json", "/public/a%5B.json", "/public/%00.json", "/public/a%23.json"):
            with self.subTest(path):
                self.check(self.client.get(path), 400, "Invalid path: Invalid token in path")
        self.check(self.client.get("/public/x"), 404)
        self.assertIn("append .json", self.client.get("/public/x").text)
        self.check(self.client.get(f"{url}?ns=unknown"), 404)

    def test_conditions(self):
        url = f"{self.path}.json"
        nothing = self.client.get(url, headers=ETAG)
        self.assertEqual(nothing.headers["etag"], "null_etag")
        set_first = self.check(self.client.put(url, headers={"if-match": "null_etag"}, json={"n": 1}), 200)
        etag = set_first.headers["etag"]
        stale = self.check(self.client.put(url, headers={"if-match": "null_etag"}, json={"n": 2}), 412, {"n": 1})
        self.assertEqual(stale.headers["etag"], etag)
        self.check(self.client.put(url, headers={"if-match": "invalid-etag"}, json={"n": 2}), 412, {"n": 1})
        unchanged = self.client.get(url, headers={"if-none-match": etag})
        self.assertEqual((unchanged.status_code, unchanged.content), (304, b""))
        changed = self.check(self.client.get(url, headers={"if-none-match": "x"}), 200, {"n": 1})
        self.assertEqual(changed.headers["etag"], etag)
        self.assertNotIn("etag", self.client.get(url).headers)
        self.check(self.client.patch(url, headers={"if-match": etag}, json={"n": 2}), 400)
        second = self.check(self.client.put(url, headers={"if-match": etag}, json={"n": 2}), 200)
        self.assertNotEqual(second.headers["etag"], etag)
        self.check(self.client.delete(url, headers={"if-match": etag}), 412, {"n": 2})
        removed = self.check(self.client.delete(url, headers={"if-match": second.headers["etag"]}), 200)
        self.assertEqual(removed.headers["etag"], "null_etag")
        # A caller without read access learns nothing of the value.
        self.check(self.client.put("/users/x.json", headers={"if-match": "x"}, json=1), 401, "Permission denied")

    def test_rules(self):
        for wrong, words in (('{"rules": {".read": "tru"}}', "1:22: Unknown variable 'tru'.\n"),):
            self.check(self.client.put("/.settings/rules.json", headers=ADMIN, content=wrong), 400, words)
        self.check(self.client.put("/.settings/rules.json?dryRun=true", headers=ADMIN, json={"rules": {}}), 200)
        self.check(self.client.get("/.settings/rules.json?format=strict", headers=ADMIN), 200, RULES)
        text = f"// 家族\n{json.dumps(RULES)}"
        self.check(self.client.put("/.settings/rules.json", headers=ADMIN, content=text), 200, {"status": "ok"})
        self.assertEqual(self.client.get("/.settings/rules.json", headers=ADMIN).text, text)
        self.check(self.client.get("/.settings/rules.json?format=strict", headers=ADMIN), 200, RULES)
        self.check(self.client.get("/.settings/other.json", headers=ADMIN), 404)

    def test_sizes(self):
        large = {"a": "x" * 2_000_000}
        self.check(self.client.put(f"{self.path}.json", json=large), 200)
        self.check(self.client.get(f"{self.path}.json"), 200, large)
        for limit, status in (("tiny", 400), ("unlimited", 200)):
            values = {str(number): number for number in range(20_000)}
            self.check(self.client.put(f"{self.path}.json?writeSizeLimit={limit}", json=values), status)
        self.check(self.client.put(f"{self.path}.json", content=b'"' + b"x" * (17 << 20) + b'"'), 400)


class HTTPTest(GatewayTest):
    def test_long_responses_are_compressed(self):
        long, short = "ながい" * 2000, "x"
        self.put(self.path, {"long": long, "short": short})
        with httpx.Client(base_url=self.stack.url, headers={"Accept-Encoding": "gzip"}) as client:
            response = client.get(f"{self.path}/long.json")
            self.assertEqual((response.headers["content-encoding"], response.json()), ("gzip", long))
            self.assertNotIn("content-encoding", client.get(f"{self.path}/short.json").headers)
        plain = self.client.get(f"{self.path}/long.json", headers={"Accept-Encoding": "identity"})
        self.assertNotIn("content-encoding", plain.headers)

    def test_chunked_bodies(self):
        pieces = [b'{"a":', b'"\xe3\x81', b"\x82", b'","b":[', b"1,2]}"]
        self.check(self.client.put(f"{self.path}.json", content=iter(pieces)), 200, {"a": "あ", "b": [1, 2]})

    def exchange(self, data):
        """Sends bytes on a connection of their own and returns all that comes until it closes."""
        received = b""
        with socket.create_connection(self.stack.programs["gateway"].address, timeout=DEADLINE) as connection:
            connection.sendall(data)
            try:
                while piece := connection.recv(1 << 16):
                    received += piece
            except ConnectionResetError:
                # Some of the bytes were never read.
                pass
        return received

    def test_requests_that_come_together_have_responses_in_their_order(self):
        self.put(self.path, {str(number): number for number in range(1, 51)})
        requests = b"".join(
            f"GET {self.path}/{number}.json HTTP/1.1\r\nHost: x\r\n\r\n".encode() for number in range(1, 50))
        last = f"GET {self.path}/50.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        received = self.exchange(requests + last)
        bodies = [int(part.split(b"HTTP/1.1")[0]) for part in received.split(b"\r\n\r\n")[1:]]
        self.assertEqual(bodies, list(range(1, 51)))

    def test_expect_100_continue(self):
        address = self.stack.programs["gateway"].address
        with socket.create_connection(address, timeout=DEADLINE) as connection, connection.makefile("rb") as lines:
            head = (f"PUT {self.path}.json HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                    "Content-Length: 3\r\nConnection: close\r\n\r\n")
            connection.sendall(head.encode())
            self.assertEqual(lines.readline(), b"HTTP/1.1 100 Continue\r\n")
            self.assertEqual(lines.readline(), b"\r\n")
            connection.sendall(b'"x"')
            self.assertIn(b"200", lines.readline())
            self.assertTrue(lines.read().endswith(b'"x"'))

    def test_one_byte_at_a_time(self):
        address = self.stack.programs["gateway"].address
        with socket.create_connection(address, timeout=DEADLINE) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            head = f"PUT {self.path}.json HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\n7"
            for byte in head.encode():
                connection.sendall(bytes([byte]))
            received = b""
            while piece := connection.recv(1 << 16):
                received += piece
        self.assertTrue(received.startswith(b"HTTP/1.1 200") and received.endswith(b"7"))

    def test_wrong_bytes_get_an_error_or_the_connection_closes(self):
        for data in (
            b"NONSENSE\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET  /x.json HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00",
            b"GET /x.json HTTP/1.1\r\nA: " + b"x" * 40_000 + b"\r\n\r\n", b"PUT /x.json HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            b"PUT /x.json HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n1",
            b"PUT /x.json HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"PUT /x.json HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
            b"GET /x.json HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 5_000 + b"\r\n",
        ):
            with self.subTest(data[:60]):
                received = self.exchange(data)
                if received:
                    self.assertRegex(received[:13], rb"^HTTP/1\.[01] 4\d\d")
        self.check(self.client.get("/healthz"), 200)

    def test_line_ends_in_bodies_break_nothing(self):
        self.check(self.client.put(f"{self.path}.json", content='{\r\n"a"\n:\r1}\n'), 200, {"a": 1})


class EventStreamTest(GatewayTest, unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)

    async def stream(self, client, url, **options):
        """The events of a stream: name and data."""
        headers = {"Accept": "text/event-stream", **options.pop("headers", {})}
        async with client.stream("GET", url, headers=headers, **options) as response:
            self.assertEqual(response.status_code, 200)
            self.assertEqual(response.headers["content-type"], "text/event-stream; charset=utf-8")
            self.assertNotIn("content-encoding", response.headers)
            name = None
            async for line in response.aiter_lines():
                if line.startswith("event: "):
                    name = line[len("event: "):]
                elif line.startswith("data: "):
                    yield name, line[len("data: "):]

    async def events(self, iterator, count=1):
        """The next events but keep-alives, data as JSON."""
        events = []
        while len(events) < count:
            name, data = await asyncio.wait_for(anext(iterator), DEADLINE)
            if name != "keep-alive":
                events.append((name, json.loads(data)))
        return events if count > 1 else events[0]

    async def test_writes_become_events(self):
        async with httpx.AsyncClient(base_url=self.stack.url, timeout=DEADLINE) as client:
            stream = self.stream(client, f"{self.path}.json")
            self.assertEqual(await self.events(stream), ("put", {"path": "/", "data": None}))
            await client.put(f"{self.path}/a/b.json", json="あ")
            self.assertEqual(await self.events(stream), ("put", {"path": "/a/b", "data": "あ"}))
            await client.patch(f"{self.path}.json", json={"c": 1, "a": None})
            self.assertEqual(await self.events(stream), ("patch", {"path": "/", "data": {"a": None, "c": 1}}))
            await client.put(f"{self.path}.json", json=[1, 2])
            self.assertEqual(await self.events(stream), ("put", {"path": "/", "data": [1, 2]}))
            self.assertEqual(await asyncio.wait_for(anext(stream), DEADLINE), ("keep-alive", "null"))
            await stream.aclose()

    async def test_queries_are_streamed(self):
        self.put("/public/list", LIST)
        async with httpx.AsyncClient(base_url=self.stack.url, timeout=DEADLINE) as client:
            stream = self.stream(client, "/public/list.json", params={"orderBy": '"n"', "limitToLast": 1})
            self.assertEqual(await self.events(stream), ("put", {"path": "/", "data": {"d": {"n": 5}}}))
            await client.put("/public/list/f.json", json={"n": 9})
            name, data = await self.events(stream)
            self.assertEqual(name, "patch")
            self.assertEqual(data, {"path": "/", "data": {"d": None, "f": {"n": 9}}})
            await stream.aclose()

    async def test_ends(self):
        async with httpx.AsyncClient(base_url=self.stack.url, timeout=DEADLINE) as client:
            denied = await client.get("/users/x.json", headers={"Accept": "text/event-stream"})
            self.check(denied, 401, "Permission denied")
            user = self.stack.sign_up()
            stream = self.stream(client, f"/users/{user['uid']}.json", params={"auth": user["idToken"]})
            self.assertEqual(await self.events(stream), ("put", {"path": "/", "data": None}))
            self.stack.call("auth", "auth.users.revoke", uid=user["uid"])
            self.assertEqual(await self.last(stream), ("auth_revoked", "credential is no longer valid"))
            other = self.stack.sign_up()
            stream = self.stream(client, f"/users/{other['uid']}.json", params={"auth": other["idToken"]})
            self.assertEqual(await self.events(stream), ("put", {"path": "/", "data": None}))
            self.stack.call("messages", "messages.rules.set", rules='{"rules":{}}')
            self.assertEqual(await self.last(stream), ("cancel", "null"))
            self.stack.call("messages", "messages.rules.set", rules=json.dumps(RULES))

    async def last(self, stream):
        """The last event: the stream ends behind it."""
        last = None
        while True:
            try:
                last = await asyncio.wait_for(anext(stream), DEADLINE)
            except StopAsyncIteration:
                return last


del GatewayTest

if __name__ == "__main__":
    unittest.main()
