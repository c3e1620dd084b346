"""Apps, their credentials, and what a wrong one costs: nothing."""

import unittest

import aiorpcx

from push_services import KEY_ID, eventually
from push_stack import IS_SLOW, RESEND, PushTestCase


class AppsTest(PushTestCase):
    async def statuses(self, method, **params):
        apps = (await self.call(method, **params))["apps"]
        return {
            provider["platform"]: (provider["status"], provider.get("problem"))
            for app in apps if app["app"] == "default" for provider in app["providers"]}

    async def test_check_calls_each_provider_and_says_what_is_wrong(self):
        found = await self.statuses("notifier.apps.check")
        self.assertEqual({platform for platform in found if found[platform][1] is None}, {"apns", "fcm", "webpush"})
        # The team's key is another one now.
        await self.apns.set(keys={KEY_ID: self.keys.other_apns.public_text})
        await self.fcm.set(oauth="refuse", revoke=True)
        try:
            await self.call("notifier.apps.reload")
            found = await self.statuses("notifier.apps.check", app="default")
            self.assertIn("InvalidProviderToken", found["apns"][1])
            self.assertIsNotNone(found["fcm"][1])
            # Nothing is lost: it waits for the operator.
            uid, device, token = await self.phone()
            notification = await self.send(uid)
            await self.apns.pushes(count=1, token=token, status=403)
            self.assertEqual(await self.devices(uid), [device])
        finally:
            await self.apns.set(keys={KEY_ID: self.keys.apns.public_text})
            await self.fcm.set(oauth="ok")
        await self.call("notifier.apps.resume", app="default")
        self.assertEqual((await self.delivery(notification))["state"], "delivered")

    @unittest.skipUnless(IS_SLOW, "waits until refused tokens are tried again: HATO_INTEROP_SLOW=1")
    async def test_many_refused_tokens_are_our_mistake_and_drop_nothing(self):
        phones = [await self.phone("ee") for _ in range(40)]
        await self.send(*(uid for uid, _, _ in phones))
        for _, _, token in phones:
            await self.apns.pushes(count=1, token=token, status=200)
        await self.apns.script(prefixes={"ee": "notForTopic"})
        await self.send(*(uid for uid, _, _ in phones), body="again")

        async def is_stopped():
            return (await self.statuses("notifier.apps.list"))["apns"][0] == "stopped"

        await eventually(is_stopped, RESEND)
        await self.apns.script(clear=True)
        for uid, device, _ in phones:
            self.assertEqual(await self.devices(uid), [device])
        await self.call("notifier.apps.resume", app="default", platform="apns")
        for _, _, token in phones:
            await self.apns.pushes(count=2, token=token, status=200, timeout=RESEND)

    async def test_push_services_that_refuse_the_key_cost_no_subscription_and_are_named(self):
        browsers = [await self.browser() for _ in range(5)]
        uids = [uid for uid, _, _ in browsers]
        await self.send(*uids)
        for _, _, identifier in browsers:
            await self.webpush.pushes(count=1, token=identifier, status=201)
        self.assertEqual((await self.statuses("notifier.apps.list"))["webpush"], ("ready", None))
        await self.webpush.script(tokens={identifier: "forbidden" for _, _, identifier in browsers})
        notification = await self.send(*uids, body="again")

        async def problem():
            return (await self.statuses("notifier.apps.list"))["webpush"][1]

        self.assertIn("responds with 403", await eventually(problem))
        health = await self.call("service.health")
        self.assertIn("responds with 403", health["checks"]["providers"]["webpush default"])
        for uid, device, _ in browsers:
            self.assertEqual(await self.devices(uid), [device])
        await self.webpush.script(clear=True)

        async def all_arrived():
            deliveries = (await self.call("notifier.status", notification=notification))["deliveries"]
            return {delivery["state"] for delivery in deliveries} == {"delivered"}

        await eventually(all_arrived)
        self.assertEqual((await self.statuses("notifier.apps.list"))["webpush"], ("ready", None))

    async def test_an_app_without_credentials_is_refused_by_name(self):
        with self.assertRaises(aiorpcx.RPCError) as found:
            await self.phone(app="unknown")
        self.assertIn("unknown", found.exception.message)


if __name__ == "__main__":
    unittest.main()
