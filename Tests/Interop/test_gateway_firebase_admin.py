"""firebase-admin against the gateway, outside its emulator mode: over TLS, its access token the administrator's key."""

import os
import queue
import threading
import time
import unittest
import uuid
from unittest import mock

import firebase_admin
import google.auth.credentials
from firebase_admin import credentials, db, exceptions

from gateway_stack import ADMIN_KEY, DEADLINE, GatewayStack

RULES = {"rules": {
    "rooms": {"$room": {"messages": {".indexOn": ["date", "sender/name", ".value"]}}},
    "inbox": {"$uid": {".read": "auth.uid === $uid", ".write": "auth.uid === $uid && auth.token.vip === true"}},
    "open": {".read": True},
}}
MESSAGES = {
    "m1": {"date": 1, "sender": {"name": "マスオ"}, "text": "いまから帰ります"},
    "m2": {"date": 2, "sender": {"name": "サザエ"}, "text": "おかえりですー"},
    "m3": {"date": 3, "sender": {"name": "タラ"}, "text": "お土産わすれないでくださいね"},
    "m4": {"text": "日付がない"},
}


class Administrator(credentials.Base):
    """A credential whose access token is a key that never ends."""

    class Token(google.auth.credentials.Credentials):
        def refresh(self, request):
            self.token = ADMIN_KEY

    def get_credential(self):
        return self.Token()


class FirebaseAdminTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # close() of a listener waits for the next bytes of its stream.
        stack = GatewayStack(RULES, ["--keep-alive-ms", "300"], tls=True)
        cls.stack = cls.enterClassContext(stack)
        cls.enterClassContext(mock.patch.dict(os.environ, {"REQUESTS_CA_BUNDLE": cls.stack.authority}))
        cls.app = cls.new_app()

    @classmethod
    def new_app(cls, **options):
        app = firebase_admin.initialize_app(
            Administrator(), {"databaseURL": cls.stack.url, **options}, name=uuid.uuid4().hex)
        cls.addClassCleanup(firebase_admin.delete_app, app)
        return app

    def setUp(self):
        self.room = db.reference(f"rooms/{uuid.uuid4().hex}", self.app)
        self.messages = self.room.child("messages")

    def test_values_are_written_and_read(self):
        self.assertIsNone(self.room.get())
        value = {"name": "磯野家", "n": 1.5, "list": ["a", "b"], "deep": {"x": {"y": True}}}
        self.room.set(value)
        self.assertEqual(self.room.get(), value)
        self.assertEqual(self.room.get(shallow=True), {"name": True, "n": True, "list": True, "deep": True})
        self.room.update({"n": 2, "deep/x/y": None, "deep/z": "あ"})
        self.assertEqual(self.room.child("deep").get(), {"z": "あ"})
        pushed = self.messages.push({"text": "いまから帰ります", "date": {".sv": "timestamp"}})
        self.assertEqual(len(pushed.key), 20)
        self.assertAlmostEqual(pushed.child("date").get() / 1000, time.time(), delta=DEADLINE)
        self.assertEqual(self.messages.push().get(), "")
        self.room.child("n").set({".sv": {"increment": 5}})
        self.assertEqual(self.room.child("n").get(), 7)
        self.room.child("キー ~@").set("値")
        self.assertEqual(self.room.child("キー ~@").get(), "値")
        pushed.delete()
        self.assertIsNone(pushed.get())
        for wrong in ({"a.b": 1}, {"": 1}, {"a": {"$": 1}}):
            with self.assertRaises(exceptions.InvalidArgumentError) as refused:
                self.room.set(wrong)
            self.assertIn("couldn't parse key", str(refused.exception))

    def test_etags_guard_writes(self):
        nothing, etag = self.room.get(etag=True)
        self.assertEqual((nothing, etag), (None, "null_etag"))
        self.room.set({"n": 1})
        value, etag = self.room.get(etag=True)
        self.assertEqual(self.room.get_if_changed(etag), (False, None, None))
        self.assertEqual(self.room.get_if_changed("other"), (True, value, etag))
        self.assertEqual(self.room.set_if_unchanged("other", {"n": 2}), (False, {"n": 1}, etag))
        changed, value, newer = self.room.set_if_unchanged(etag, {"n": 2})
        self.assertEqual((changed, value), (True, {"n": 2}))
        self.assertNotEqual(newer, etag)
        self.assertEqual(self.room.get(etag=True), ({"n": 2}, newer))

    def test_transactions_of_many_add_up(self):
        counter = self.room.child("n")
        failures = []

        def add():
            try:
                for _ in range(5):
                    # 25 tries, of which each other thread can spoil one a round.
                    counter.transaction(lambda value: (value or 0) + 1)
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        self.assertEqual(failures, [])
        self.assertEqual(counter.get(), 20)

    def test_queries_are_ordered_and_limited(self):
        self.messages.set(MESSAGES)
        # A limit changes the query that it is called on.
        for query, keys in (
            (self.messages.order_by_child("date"), ["m4", "m1", "m2", "m3"]),
            (self.messages.order_by_child("date").limit_to_last(1), ["m3"]),
            (self.messages.order_by_child("date").limit_to_first(2), ["m4", "m1"]),
            (self.messages.order_by_child("date").start_at(2), ["m2", "m3"]),
            (self.messages.order_by_child("date").end_at(1), ["m4", "m1"]),
            (self.messages.order_by_child("date").start_at(1).end_at(2), ["m1", "m2"]),
            (self.messages.order_by_child("date").equal_to(2), ["m2"]),
            (self.messages.order_by_child("sender/name").equal_to("タラ"), ["m3"]),
            (self.messages.order_by_child("sender/name").start_at("サ").end_at("サ\uf8ff"), ["m2"]),
            (self.messages.order_by_key().start_at("m2").limit_to_first(2), ["m2", "m3"]),
            (self.messages.order_by_key().limit_to_last(2), ["m3", "m4"]),
        ):
            with self.subTest(keys=keys):
                found = query.get()
                self.assertEqual(list(found), keys)
                self.assertEqual(found, {key: MESSAGES[key] for key in keys})
        self.messages.set({"a": 3, "b": 1, "c": 2})
        self.assertEqual(list(self.messages.order_by_value().limit_to_last(2).get()), ["c", "a"])
        with self.assertRaises(exceptions.InvalidArgumentError) as refused:
            self.messages.order_by_child("text").get()
        self.assertIn('Index not defined, add ".indexOn": "text"', str(refused.exception))

    def test_a_listener_follows_and_ends(self):
        events = queue.Queue()
        listener = self.room.listen(lambda event: events.put((event.event_type, event.path, event.data)))
        try:
            self.assertEqual(events.get(timeout=DEADLINE), ("put", "/", None))
            self.room.child("text").set("ただいま")
            self.assertEqual(events.get(timeout=DEADLINE), ("put", "/text", "ただいま"))
            self.room.update({"text": "おかえり", "n": 1})
            self.assertEqual(events.get(timeout=DEADLINE), ("patch", "/", {"text": "おかえり", "n": 1}))
            self.room.child("text").delete()
            self.assertEqual(events.get(timeout=DEADLINE), ("put", "/text", None))
            db.reference(f"rooms/{self.room.key}", self.app).set({"n": 2})
            self.assertEqual(events.get(timeout=DEADLINE), ("put", "/", {"n": 2}))
        finally:
            began = time.monotonic()
            # The thread of the library fails in the stream that the library has closed.
            with mock.patch.object(threading, "excepthook", lambda _: None):
                listener.close()
        self.assertLess(time.monotonic() - began, DEADLINE)
        self.assertTrue(events.empty())

    def test_overrides_see_as_the_rules_do(self):
        vip = self.new_app(databaseAuthVariableOverride={"uid": "masuo", "token": {"vip": True}})
        user = self.new_app(databaseAuthVariableOverride={"uid": "masuo"})
        nobody = self.new_app(databaseAuthVariableOverride=None)
        db.reference("inbox/masuo", vip).set("おかえり")
        self.assertEqual(db.reference("inbox/masuo", user).get(), "おかえり")
        self.assertIsNone(db.reference("open/x", nobody).get())
        for app, path, write in (
            (user, "inbox/masuo", True), (vip, "inbox/tara", False), (nobody, "inbox/masuo", False),
            (nobody, "open/x", True),
        ):
            reference = db.reference(path, app)
            with self.subTest(path=path), self.assertRaises(exceptions.UnauthenticatedError) as denied:
                reference.set(1) if write else reference.get()
            self.assertEqual(str(denied.exception), "Permission denied")

    def test_rules_are_read_and_set(self):
        client = db.reference("", self.app)._client
        self.assertEqual(client.body("get", "/.settings/rules.json", params="format=strict"), RULES)
        new = {"rules": {**RULES["rules"], "late": {".indexOn": "n"}}}
        client.request("put", "/.settings/rules.json", json=new)
        # A query right behind its new index.
        late = db.reference("late", self.app)
        late.set({"a": {"n": 2}, "b": {"n": 1}})
        self.assertEqual(list(late.order_by_child("n").get()), ["b", "a"])
        self.assertEqual(client.body("get", "/.settings/rules.json", params="format=strict"), new)
        with self.assertRaises(exceptions.InvalidArgumentError) as wrong:
            client.request("put", "/.settings/rules.json", json={"rules": {".read": "tru"}})
        self.assertIn("Unknown variable 'tru'.", str(wrong.exception))


if __name__ == "__main__":
    unittest.main()
