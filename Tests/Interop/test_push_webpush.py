"""The notifier delivers by Web Push."""

import json
import time
import unittest

import aiorpcx

from push_services import SUBJECT
from push_stack import BODY, TITLE, PushTestCase


class WebPushPushTest(PushTestCase):
    async def test_what_the_browser_decrypts_is_what_was_sent(self):
        self.assertEqual((await self.call("notifier.webpush.key"))["key"], self.keys.vapid.point)
        uid, _, identifier = await self.browser()
        await self.send(
            uid, data={"chat": "c1"},
            options={"ttlSeconds": 600, "link": "https://chat.example.com/c1", "collapseKey": "c1"})
        push, = await self.webpush.pushes(count=1, token=identifier)
        message = json.loads(push["text"])
        shown = message["notification"]
        self.assertEqual((message["web_push"], shown["title"], shown["body"]), (8030, TITLE, BODY))
        self.assertEqual((shown["navigate"], shown["data"]["chat"]), ("https://chat.example.com/c1", "c1"))
        headers = push["headers"]
        self.assertIn(headers["urgency"], ("normal", "high"))
        self.assertTrue(590 <= int(headers["ttl"]) <= 600)
        self.assertRegex(headers["topic"], r"^[A-Za-z0-9_-]{1,32}$")
        self.assertEqual((push["vapid"]["aud"], push["vapid"]["sub"]), (self.webpush.url, SUBJECT))
        self.assertLessEqual(push["vapid"]["exp"], time.time() + 12 * 3_600 + 60)
        # One of the sizes, not that of the text.
        self.assertGreater(push["padding"], 0)
        for _ in range(3):
            await self.delivery(await self.send(uid))
        await self.no_errors(self.webpush, vapidTokens=1)

    async def test_the_longest_text_is_cut_and_fits(self):
        uid, _, identifier = await self.browser()
        await self.send(uid, body="👨‍👩‍👧" * 220)
        push, = await self.webpush.pushes(count=1, token=identifier)
        self.assertEqual(push["status"], 201)
        self.assertLessEqual(push["bytes"], 4_096)
        await self.no_errors(self.webpush)

    async def test_ended_subscriptions_are_removed_and_limits_waited_for(self):
        ended, missing, limited, moved = [await self.browser() for _ in range(4)]
        await self.webpush.unsubscribe(ended[2])
        await self.webpush.script(tokens={
            missing[2]: "notFound", limited[2]: [{"response": "tooMany", "retryAfter": 1, "times": 2}],
            moved[2]: [{"response": "redirect", "location": f"{self.webpush.url}/push/{limited[2]}"}]})
        for uid, _, _ in (ended, missing):
            self.assertEqual((await self.delivery(await self.send(uid)))["state"], "dropped")
            self.assertEqual(await self.devices(uid), [])
        self.assertEqual((await self.delivery(await self.send(limited[0])))["state"], "delivered")
        pushes = await self.webpush.pushes(count=3, token=limited[2])
        self.assertEqual([push["status"] for push in pushes], [429, 429, 201])
        self.assertTrue(all(later["time"] - earlier["time"] >= 0.95 for earlier, later in zip(pushes, pushes[1:])))
        notification = await self.send(moved[0])
        await self.webpush.pushes(count=1, token=moved[2], status=307)
        # The redirect is a failure, and is not followed.
        self.assertEqual((await self.delivery(notification))["state"], "delivered")
        self.assertEqual(len(await self.webpush.pushes(token=limited[2])), 3)
        await self.no_errors(self.webpush)

    async def test_wrong_subscriptions_are_refused(self):
        subscription, _ = await self.webpush.subscribe()
        keys = subscription["keys"]
        for wrong in (
            {"endpoint": "ftp://push.example.com/1"}, {"keys": keys | {"auth": keys["auth"][:-2]}},
            {"keys": keys | {"p256dh": keys["p256dh"][:-4] + "AAAA"}}, {"keys": {}},
        ):
            with self.assertRaises(aiorpcx.RPCError, msg=str(wrong)):
                await self.register("webpush", subscription=subscription | wrong)


if __name__ == "__main__":
    unittest.main()
