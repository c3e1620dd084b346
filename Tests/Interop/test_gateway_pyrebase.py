"""pyrebase4 against the gateway, in an environment of its own (it needs setuptools before 81 and urllib3 before 2)."""

import json
import os
import subprocess
import unittest

from gateway_stack import GatewayStack

PYTHON = os.environ.get("HATO_PYREBASE_PYTHON")
CLIENT = os.path.join(os.path.dirname(__file__), "pyrebase_client.py")
RULES = {"rules": {"rooms": {
    ".read": "auth != null", ".write": "auth != null", "$room": {"messages": {".indexOn": ["date", "text"]}}}}}
TEXT = "いまから帰ります"


@unittest.skipUnless(PYTHON, "HATO_PYREBASE_PYTHON names no Python with pyrebase4")
class PyrebaseTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        # Its stream is closed with the next bytes.
        self.stack = self.enterContext(GatewayStack(RULES, ["--keep-alive-ms", "300"]))

    def run_client(self, *arguments):
        ended = subprocess.run(
            [PYTHON, "-W", "ignore", CLIENT, self.stack.url, *arguments], capture_output=True, timeout=120, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr.decode())
        return json.loads(ended.stdout)

    def check_database(self, seen):
        self.assertEqual(seen, {
            "set": {"name": "磯野家", "n": 1}, "get": {"name": "磯野家", "n": 1}, "update": {"n": 2},
            "last": [{"date": 2, "text": f"{TEXT}2"}], "ranged": [0, 1], "equal": [1],
            "shallow": ["messages", "n", "name"], "stale": ["ETag", "value"], "conditional": 3,
            "events": [
                {"event": "put", "path": "/", "data": 3},
                {"event": "put", "path": "/", "data": 4}],
            "removed": None, "denied": 401,
        })

    def test_the_database(self):
        user = self.stack.sign_up()
        self.check_database(self.run_client(user["idToken"])["database"])

    def test_accounts(self):
        seen = self.run_client()
        self.assertEqual(seen["account"], {
            "sameUser": True, "email": "masuo@example.com", "wrong": "INVALID_LOGIN_CREDENTIALS"})
        self.check_database(seen["database"])


if __name__ == "__main__":
    unittest.main()
