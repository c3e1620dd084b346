"""The notifier delivers webhooks that the reference library of Standard Webhooks verifies."""

import unittest
import uuid

from push_services import PlainWebhooks
from push_stack import BODY, TITLE, PushTestCase


class WebhookPushTest(PushTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.webhooks = PlainWebhooks(cls.keys)
        cls.addClassCleanup(cls.webhooks.end)
        cls.services.append(cls.webhooks)

    async def webhook(self):
        """A new user's webhook, whose receiver verifies with the secret that the notifier made: the user, the device,
        the id of the receiver and the secret."""
        url, identifier = await self.webhooks.receiver()
        uid = f"u-{uuid.uuid4().hex[:12]}"
        device = await self.call("notifier.devices.register", platform="webhook", uid=uid, url=url)
        await self.webhooks.receiver(device["secret"], identifier=identifier)
        return uid, device["device"], identifier, device["secret"]

    async def test_the_library_verifies_what_is_sent(self):
        uid, device, identifier, secret = await self.webhook()
        notification = await self.send(uid, data={"chat": "c1"}, options={"collapseKey": "c1"})
        push, = await self.webhooks.pushes(count=1, token=identifier)
        self.assertEqual((push["status"], push["verifiedBy"]), (204, [secret]))
        self.assertEqual(push["body"]["type"], "notification")
        data = push["body"]["data"]
        self.assertEqual(
            [data[name] for name in ("notification", "device", "uid", "title", "body", "data", "collapseKey")],
            [notification, device, uid, TITLE, BODY, {"chat": "c1"}, "c1"])
        self.assertEqual((await self.delivery(notification))["state"], "delivered")
        await self.no_errors(self.webhooks)

    async def test_two_failures_are_followed_by_a_delivery_with_the_same_id(self):
        uid, _, identifier, _ = await self.webhook()
        await self.webhooks.script(tokens={identifier: [{"response": "internal", "times": 2}]})
        notification = await self.send(uid)
        self.assertEqual((await self.delivery(notification))["state"], "delivered")
        pushes = await self.webhooks.pushes(count=3, token=identifier)
        self.assertEqual([push["status"] for push in pushes], [500, 500, 204])
        # The receiver has compared the bodies.
        self.assertEqual(len({push["headers"]["webhook-id"] for push in pushes}), 1)
        await self.no_errors(self.webhooks)

    async def test_a_receiver_that_is_gone_is_called_no_more(self):
        uid, device, identifier, _ = await self.webhook()
        await self.webhooks.script(tokens={identifier: "gone"})
        self.assertEqual((await self.delivery(await self.send(uid)))["state"], "dropped")
        listed, = (await self.call("notifier.devices.list", uid=uid))["devices"]
        self.assertEqual((listed["device"], listed["state"], listed["disabledReason"]), (device, "disabled", "gone"))
        again = await self.call(
            "notifier.send", to={"uids": [uid]}, notification={"title": TITLE, "body": BODY})
        self.assertEqual((await self.call("notifier.status", notification=again["notification"]))["deliveries"], [])
        self.assertEqual(len(await self.webhooks.pushes(token=identifier)), 1)
        await self.no_errors(self.webhooks)

    async def test_redirects_are_not_followed(self):
        uid, _, identifier, _ = await self.webhook()
        elsewhere, other = await self.webhooks.receiver()
        await self.webhooks.script(tokens={identifier: [
            {"response": "redirect", "location": elsewhere, "status": status} for status in (301, 307)]})
        delivery = await self.delivery(await self.send(uid))
        self.assertEqual(delivery["state"], "delivered")
        pushes = await self.webhooks.pushes(count=3, token=identifier)
        self.assertEqual([push["status"] for push in pushes], [301, 307, 204])
        self.assertEqual(await self.webhooks.pushes(token=other), [])
        await self.no_errors(self.webhooks)

    async def test_both_secrets_sign_while_one_replaces_the_other(self):
        uid, device, identifier, former = await self.webhook()
        secret = (await self.call("notifier.devices.rotateSecret", device=device))["secret"]
        self.assertNotEqual(secret, former)
        # A receiver that has not changed its secret yet, one that has both, and one that has the new one only.
        for secrets in ([former], [former, secret], [secret]):
            await self.webhooks.receiver(*secrets, identifier=identifier)
            self.assertEqual((await self.delivery(await self.send(uid)))["state"], "delivered")
        pushes = await self.webhooks.pushes(count=3, token=identifier)
        self.assertEqual([push["verifiedBy"] for push in pushes], [[former], [former, secret], [secret]])
        self.assertTrue(all(len(push["headers"]["webhook-signature"].split()) == 2 for push in pushes))
        await self.no_errors(self.webhooks)


if __name__ == "__main__":
    unittest.main()
