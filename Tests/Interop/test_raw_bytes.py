"""Bytes that no client library would send, against protocol §1: the answer is as promised and the service goes on."""

import json
import socket
import unittest

from stack import Stack

DEADLINE = 60


class RawBytesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = Stack().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.stack.__exit__()

    def setUp(self):
        self.socket = socket.create_connection(self.stack.address("messages"), timeout=DEADLINE)
        self.lines = self.socket.makefile("rb")

    def tearDown(self):
        self.lines.close()
        self.socket.close()
        with socket.create_connection(self.stack.address("messages"), timeout=DEADLINE) as other:
            other.sendall(b'{"jsonrpc":"2.0","id":"alive","method":"service.health"}\n')
            with other.makefile("rb") as lines:
                self.assertEqual(json.loads(lines.readline())["id"], "alive")

    def ask(self, data):
        self.socket.sendall(data + b"\n")
        return self.answer()

    def answer(self):
        line = self.lines.readline()
        self.assertTrue(line.endswith(b"\n"), "the connection closed")
        return json.loads(line)

    def assert_error(self, answer, code, identifier=None):
        self.assertEqual(answer["error"]["code"], code)
        self.assertEqual(answer["id"], identifier)
        self.assertNotIn("result", answer)

    def test_the_examples_of_the_specification(self):
        self.assert_error(self.ask(b'{"jsonrpc": "2.0", "method": "foobar", "id": "1"}'), -32601, "1")
        self.assert_error(self.ask(b'{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]'), -32700)
        self.assert_error(self.ask(b'{"jsonrpc": "2.0", "method": 1, "params": "bar"}'), -32600)
        self.assert_error(self.ask(b'[{"jsonrpc": "2.0", "method": "sum"},{"jsonrpc": "2.0", "method"]'), -32700)
        self.assert_error(self.ask(b"[]"), -32600)
        answers = self.ask(b"[1,2,3]")
        self.assertEqual(len(answers), 3)
        for answer in answers:
            self.assert_error(answer, -32600)
        answers = self.ask(
            b'[{"jsonrpc":"2.0","method":"service.health","id":"1"},{"jsonrpc":"2.0","method":"notify_hello"},'
            b'{"foo":"boo"},{"jsonrpc":"2.0","method":"foo.get","params":{"name":"myself"},"id":"5"}]')
        by_id = {answer["id"]: answer for answer in answers}
        self.assertEqual(set(by_id), {"1", None, "5"})
        self.assertIn("result", by_id["1"])
        self.assert_error(by_id[None], -32600)
        self.assert_error(by_id["5"], -32601, "5")
        # All notifications: none of them has a response; the next response is that of the next request.
        self.socket.sendall(b'[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b","params":[7]}]\n')
        self.socket.sendall(b'{"jsonrpc":"2.0","method":"update","params":[1,2,3,4,5]}\n')
        self.assertEqual(self.ask(b'{"jsonrpc":"2.0","id":9,"method":"service.health"}')["id"], 9)

    def test_garbage_is_a_parse_error_and_the_connection_lives(self):
        for line in (
            b"\xff\xfe", b'{"jsonrpc":"2.0","id":1,"method":"\xc0\xaf"}', b'"\\ud800"', b"\x00", b"nonsense",
            b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"x"}', b'{"id":1} trailing', b"[" * 60_000,
        ):
            self.assert_error(self.ask(line), -32700)

    def test_one_byte_at_a_time(self):
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b'\r\n\n{"jsonrpc":"2.0","id":1e2,"method":"service.health"}\r\n':
            self.socket.sendall(bytes([byte]))
        self.assertEqual(self.answer()["id"], 100)

    def authenticate(self):
        key = json.dumps(self.stack.admin_key).encode()
        answer = self.ask(b'{"jsonrpc":"2.0","id":0,"method":"session.authenticate","params":{"auth":' + key + b"}}")
        self.assertTrue(answer["result"]["admin"])

    def test_many_brackets(self):
        self.authenticate()
        self.assert_error(self.ask(b"[" * 100_000), -32700)
        self.assertEqual(self.ask(b'{"jsonrpc":"2.0","id":1,"method":"service.health"}')["id"], 1)

    def test_a_line_over_the_limit_is_answered_then_closed(self):
        self.authenticate()
        try:
            self.socket.sendall(b" " * (16 * 1024 * 1024 + 1) + b"\n")
        except OSError:
            pass  # The server may close while the last bytes are on their way.
        answer = self.answer()
        self.assert_error(answer, -32600)
        self.assertEqual(answer["error"]["data"]["reason"], "line_too_long")
        self.assertEqual(self.lines.read(), b"")

    def test_a_web_page_reaches_nothing(self):
        self.socket.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n" + b'{"jsonrpc":"2.0","id":1,"method":"service.health"}\n')
        try:
            self.assertEqual(self.lines.read(), b"")
        except ConnectionResetError:
            pass
