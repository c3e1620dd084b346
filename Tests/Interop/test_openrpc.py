"""The PyPI package openrpc reads the document that every service gives of itself."""

import json
import socket
import unittest

import openrpc

from stack import Stack


class OpenRPCTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = Stack().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.stack.__exit__()

    def discover(self, service, params=""):
        with socket.create_connection(self.stack.address(service), timeout=30) as peer:
            peer.sendall(b'{"jsonrpc":"2.0","id":1,"method":"rpc.discover"%s}\n' % params.encode())
            return json.loads(peer.makefile("rb").readline())["result"]

    def test_every_document_is_read(self):
        for service in ("auth", "messages", "notifier"):
            document = self.discover(service)
            read = openrpc.OpenRPC(**document)
            self.assertEqual([method.name for method in read.methods], [m["name"] for m in document["methods"]])
            for method in read.methods:
                for parameter in method.params:
                    self.assertIsInstance(parameter, openrpc.ContentDescriptor, f"{method.name}")

    def test_no_params_may_be_an_empty_list(self):
        self.assertEqual(self.discover("messages", ',"params":[]'), self.discover("messages"))


if __name__ == "__main__":
    unittest.main()
