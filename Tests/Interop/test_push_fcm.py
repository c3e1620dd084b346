"""The notifier delivers over FCM."""

import asyncio
import unittest
import uuid

import aiorpcx

from push_services import eventually
from push_stack import BODY, TITLE, PushTestCase


class FCMPushTest(PushTestCase):
    async def test_a_notification_is_a_valid_message_and_oauth_is_fetched_once(self):
        uid, _, token = await self.android()
        notification = await self.send(
            uid, data={"chat": "c1"}, options={"ttlSeconds": 3_600, "collapseKey": "c1", "sound": "default"})
        push, = await self.fcm.pushes(count=1, token=token)
        message = push["message"]
        self.assertEqual((push["status"], push["target"], push["validateOnly"]), (200, "token", False))
        self.assertEqual((message["notification"]["title"], message["notification"]["body"]), (TITLE, BODY))
        self.assertEqual(message["data"]["chat"], "c1")
        self.assertEqual((message["android"]["priority"], message["android"]["collapse_key"]), ("HIGH", "c1"))
        self.assertRegex(message["android"]["ttl"], r"^3(600|59\d)s$")
        self.assertEqual((await self.delivery(notification))["lastAttempt"]["id"], push["name"])
        fid = f"fid-{uuid.uuid4().hex}"
        uid, _ = await self.register("fcm", fid=fid)
        await self.send(uid)
        push, = await self.fcm.pushes(count=1, token=fid)
        self.assertEqual(push["target"], "fid")
        phones = await asyncio.gather(*(self.android() for _ in range(50)))
        await self.send(*(uid for uid, _, _ in phones))
        for _, _, token in phones:
            await self.fcm.pushes(count=1, token=token, status=200)
        await self.no_errors(self.fcm, oauthFetches=1, oauthRefused=0, unauthorized=0)

    async def test_each_kind_of_error_does_what_it_should(self):
        # What is scripted, the state in the end, and whether the device is there after it. None of these devices has
        # had a push before.
        kinds = {
            "unregistered": ("dropped", False), "invalidToken": ("dropped", False),
            "invalidArgument": ("dead", True), "senderIdMismatch": ("dropped", False),
            "unavailable": ("delivered", True), "internal": ("delivered", True), "badGateway": ("delivered", True),
            "gatewayTimeout": ("delivered", True), "unauthenticated": ("delivered", True),
            "garbage": ("delivered", True), "close": ("delivered", True),
        }
        phones = {name: await self.android(name) for name in kinds}
        await self.fcm.script(tokens={
            token: [name] if kinds[name][0] == "delivered" else name for name, (_, _, token) in phones.items()})
        sent = {name: await self.send(uid) for name, (uid, _, _) in phones.items()}
        for name, (state, stays) in kinds.items():
            uid, device, _ = phones[name]
            with self.subTest(name):
                self.assertEqual((await self.delivery(sent[name]))["state"], state)

                async def is_so(uid=uid, wanted=[device] if stays else []):
                    return await self.devices(uid) == wanted

                await eventually(is_so)
        self.assertEqual((await self.fcm.state())["protocolErrors"], [])

    async def test_the_old_call_arrives_as_valid_v1(self):
        """`sendToDevice` takes the payload of the function that Firebase's prototype chat had."""
        token = f"phone-{uuid.uuid4().hex}"
        await self.fcm.script(prefixes={"dead-": "unregistered", "bad-": "invalidToken", "else-": "senderIdMismatch"})
        tokens = [token] + [f"{kind}-{uuid.uuid4().hex}" for kind in ("dead", "bad", "else")]
        result = await self.call("notifier.sendToDevice", token=tokens, payload={
            "notification": {"title": "マスオさんからのメッセージ", "body": "今行きます", "badge": "1", "sound": "default"},
        }, options={"priority": "high"})
        self.assertEqual((result["successCount"], result["failureCount"]), (1, 3))
        push, = await self.fcm.pushes(count=1, token=token, status=200)
        message = push["message"]
        self.assertEqual(message["notification"], {"title": "マスオさんからのメッセージ", "body": "今行きます"})
        android, apns = message["android"], message["apns"]
        self.assertEqual((android["priority"], android["notification"]["notification_count"]), ("HIGH", 1))
        self.assertEqual((apns["payload"]["aps"]["badge"], apns["payload"]["aps"]["sound"]), (1, "default"))
        self.assertEqual(apns["headers"]["apns-priority"], "10")
        self.assertEqual([outcome.get("error", {}).get("code") for outcome in result["results"]], [
            None, "messaging/registration-token-not-registered", "messaging/invalid-registration-token",
            "messaging/mismatched-credential"])
        self.assertEqual((await self.fcm.state())["protocolErrors"], [])

    async def test_a_quota_is_waited_for(self):
        uid, _, token = await self.android()
        await self.fcm.script(tokens={token: [{"response": "quotaExceeded", "retryAfter": 2, "times": 2}]})
        await self.send(uid)
        await self.fcm.pushes(count=1, token=token, status=200)
        pushes = await self.fcm.pushes(token=token)
        self.assertEqual([push["status"] for push in pushes], [429, 429, 200])
        self.assertTrue(all(later["time"] - earlier["time"] >= 1.9 for earlier, later in zip(pushes, pushes[1:])))

    async def test_an_access_token_that_is_revoked_is_fetched_once_more(self):
        uid, _, token = await self.android()
        await self.delivery(await self.send(uid))
        before = (await self.fcm.state())["oauthFetches"]
        await self.fcm.set(revoke=True)
        await self.delivery(await self.send(uid, body="again"))
        await self.fcm.pushes(count=2, token=token, status=200)
        self.assertEqual((await self.fcm.state())["oauthFetches"], before + 1)

    async def test_a_bad_key_of_apns_in_the_project_holds_only_its_push_and_fetches_no_token(self):
        uid, device, token = await self.android()
        await self.delivery(await self.send(uid))
        before = (await self.fcm.state())["oauthFetches"]
        await self.fcm.script(tokens={token: ["thirdPartyAuthError"]})
        notification = await self.send(uid, body="again")
        await self.fcm.pushes(count=1, token=token, status=401)
        self.assertEqual(await self.devices(uid), [device])
        self.assertEqual((await self.fcm.state())["oauthFetches"], before)
        self.assertEqual((await self.delivery(notification))["state"], "delivered")

    async def test_reserved_keys_and_unknown_members_are_refused_at_send(self):
        uid, _, _ = await self.android()
        for members in (
            {"data": {"from": "x"}}, {"data": {"google.x": "x"}}, {"data": {"gcm_x": "x"}}, {"data": {"count": 3}},
            {"platforms": {"fcm": {"android": {"notification": {"badge": "1"}}}}},
        ):
            with self.assertRaises(aiorpcx.RPCError, msg=str(members)):
                await self.send(uid, **members)


if __name__ == "__main__":
    unittest.main()
