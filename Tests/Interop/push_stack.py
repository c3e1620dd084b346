"""A stack whose notifier delivers to the stand-ins of APNs, FCM and Web Push, which clients of others have proven
(test_apns_stand_in.py and its neighbours). Each test has users and devices of its own; the stack and the stand-ins are
shared, as are the one provider token and the one access token.

HATO_INTEROP_SLOW=1 adds what has to wait for deadlines of the notifier: a push without a response, 429, many refused
tokens.
"""

import asyncio
import os
import tempfile
import unittest
import uuid

import aiorpcx

from push_services import DEADLINE, APNs, Keys, PlainFCM, PlainWebPush, apps_file, device_token, eventually
from stack import Stack

IS_SLOW = bool(os.environ.get("HATO_INTEROP_SLOW"))
TITLE, BODY = "サザエさん", "今行きます👨‍👩‍👧"
# Longer than the deadline of an attempt with the wait before the next one.
RESEND = 120


class PushTestCase(unittest.IsolatedAsyncioTestCase):
    """One stack with the three stand-ins for the tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.keys = Keys(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="hato-push-")))
        cls.services = []
        # A debug build of async-http-client 1.37 ends with an assertion when SETTINGS reach an idle connection.
        for kind, arguments in ((APNs, ["--raise-early"]), (PlainFCM, []), (PlainWebPush, [])):
            cls.services.append(kind(cls.keys, *arguments))
            cls.addClassCleanup(cls.services[-1].end)
        cls.apns, cls.fcm, cls.webpush = cls.services
        cls.apps_path = apps_file(cls.keys, cls.apns, cls.fcm, cls.webpush)
        cls.stack = cls.enterClassContext(Stack("--apps-file", cls.apps_path))

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)
        for service in self.services:
            await service.connect()
            self.addAsyncCleanup(service.disconnect)
        host, port = self.stack.address("notifier")
        self.session = await self.enterAsyncContext(aiorpcx.connect_rs(host, port))
        self.session.sent_request_timeout = DEADLINE

    async def call(self, method, **params):
        return await self.session.send_request(method, {"auth": self.stack.admin_key} | params)

    async def register(self, platform, uid=None, **members):
        """A new user's device."""
        uid = uid or f"u-{uuid.uuid4().hex[:12]}"
        result = await self.call("notifier.devices.register", platform=platform, uid=uid, **members)
        return uid, result["device"]

    async def phone(self, prefix="", **members):
        """A phone of APNs: its user, device and token."""
        token = device_token(prefix)
        return *await self.register("apns", token=token, **members), token

    async def android(self, name="phone", **members):
        """A phone of FCM: its user, device and token."""
        token = f"{name}-{uuid.uuid4().hex}"
        return *await self.register("fcm", token=token, **members), token

    async def browser(self, uid=None):
        """A browser: its user, device and the id of its subscription."""
        subscription, identifier = await self.webpush.subscribe(self.keys.vapid.point)
        return *await self.register("webpush", uid, subscription=subscription), identifier

    async def send(self, *uids, title=TITLE, body=BODY, **members):
        """The id of a notification for users."""
        result = await self.call(
            "notifier.send", to={"uids": list(uids)}, notification={"title": title, "body": body}, **members)
        self.assertEqual(result["recipients"], len(uids))
        return result["notification"]

    async def devices(self, uid):
        return [entry["device"] for entry in (await self.call("notifier.devices.list", uid=uid))["devices"]]

    async def delivery(self, notification, timeout=DEADLINE):
        """The one delivery of a notification, once it has ended."""
        async def ended():
            delivery, = (await self.call("notifier.status", notification=notification))["deliveries"]
            return delivery if delivery["state"] in ("delivered", "dropped", "dead") else None

        return await eventually(ended, timeout)

    async def no_errors(self, service, **wanted):
        """Nothing against the protocol has been sent so far."""
        state = await service.state()
        self.assertEqual((state["protocolErrors"], state["warnings"]), ([], {}))
        for name, value in wanted.items():
            self.assertEqual(state[name], value, name)
        return state
