"""The notifier delivers to the stand-ins of APNs, FCM and Web Push, which clients of others have proven
(test_apns_stand_in.py and its neighbours). Each test has users and devices of its own; the stack and the stand-ins are
shared, as are the one provider token and the one access token.

HATO_INTEROP_SLOW=1 adds what has to wait for deadlines of the notifier (a push without a response, 429).
"""

import asyncio
import json
import os
import tempfile
import time
import unittest
import uuid

import aiorpcx

from push_services import (
    DEADLINE, SUBJECT, TOPIC, APNs, Keys, PlainFCM, PlainWebPush, apps_file, device_token, eventually,
)
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
        for kind in (APNs, PlainFCM, PlainWebPush):
            cls.services.append(kind(cls.keys))
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

    async def browser(self):
        """A browser: its user, device and the id of its subscription."""
        subscription, identifier = await self.webpush.subscribe(self.keys.vapid.point)
        return *await self.register("webpush", subscription=subscription), identifier

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


class APNsPushTest(PushTestCase):
    async def test_a_notification_arrives_with_every_header(self):
        uid, _, token = await self.phone(locale="ja-JP")
        before = int(time.time())
        notification = await self.send(
            uid, data={"chat": "c1"}, options={"ttlSeconds": 3_600, "thread": "c1", "sound": "default"})
        push, = await self.apns.pushes(count=1, token=token)
        headers = push["headers"]
        self.assertEqual((headers["apns-topic"], headers["apns-push-type"], headers["apns-priority"]), (
            TOPIC, "alert", "10"))
        self.assertTrue(before + 3_590 <= int(headers["apns-expiration"]) <= time.time() + 3_610)
        # It is the request's name on the device, by which an app takes the notification away.
        self.assertEqual(headers["apns-collapse-id"], notification)
        self.assertEqual(push["id"], str(uuid.UUID(push["id"])))
        aps = push["payload"]["aps"]
        self.assertEqual((aps["alert"], aps["thread-id"], aps["sound"]), (
            {"title": TITLE, "body": BODY}, "c1", "default"))
        delivery = await self.delivery(notification)
        self.assertEqual((delivery["state"], delivery["attempts"], delivery["lastAttempt"]["status"]), (
            "delivered", 1, 200))
        await self.no_errors(self.apns, providerTokens=1)

    async def test_a_collapse_key_of_more_than_64_bytes_and_a_long_body_are_cut(self):
        uid, _, token = await self.phone()
        await self.send(uid, body="👨‍👩‍👧" * 220, options={"collapseKey": "雑" * 60})
        push, = await self.apns.pushes(count=1, token=token)
        self.assertLessEqual(len(push["headers"]["apns-collapse-id"].encode()), 64)
        self.assertLessEqual(len(push["body"].encode()), 4_096)
        body = push["payload"]["aps"]["alert"]["body"]
        self.assertEqual(body.rstrip("…").replace("👨‍👩‍👧", ""), "")
        self.assertTrue(body.endswith("…"))
        await self.no_errors(self.apns)

    async def test_ten_thousand_pushes_and_only_dead_tokens_are_dropped(self):
        users, rounds = 1_250, 8
        await self.apns.script(prefixes={
            "aa": "gone", "bb": "bad", "cc": [{"response": "unavailable", "times": 2}]})
        # These never had a push, so that a refusal is no sign of our mistake. A bad token is tried in the other
        # environment, whose service is the same stand-in here.
        dead = [await self.phone("aa") for _ in range(5)] + [await self.phone("bb") for _ in range(5)]
        twice = [await self.phone("cc") for _ in range(5)]
        phones = await asyncio.gather(*(self.phone("dd") for _ in range(users)))
        for _, _, token in dead:
            self.assertTrue(token.startswith(("aa", "bb")))
        await self.send(*(uid for uid, _, _ in dead + twice))
        for number in range(rounds):
            for part in (phones[:users // 2], phones[users // 2:]):
                await self.send(*(uid for uid, _, _ in part), body=str(number))

        async def arrived():
            return (await self.apns.state())["pushes"] >= users * rounds + 20

        await eventually(arrived, RESEND)
        wanted = {token for _, _, token in phones}
        pushes = [push for push in await self.apns.pushes(status=200) if push["token"] in wanted]
        self.assertEqual(len({push["id"] for push in pushes}), users * rounds)
        self.assertEqual(len({(push["token"], push["payload"]["aps"]["alert"]["body"]) for push in pushes}),
                         users * rounds)
        for _, _, token in twice:
            found = await self.apns.pushes(count=3, token=token)
            self.assertEqual([push["status"] for push in found], [503, 503, 200])
            self.assertEqual(len({push["id"] for push in found}), 1)
        for uid, _, _ in dead:
            async def is_dropped(uid=uid):
                return await self.devices(uid) == []

            await eventually(is_dropped)
        for uid, device, _ in [*twice, phones[0], phones[-1]]:
            self.assertEqual(await self.devices(uid), [device])
        state = await self.no_errors(self.apns, providerTokens=1)
        self.assertGreater(state["streamsMax"], 1)
        self.assertEqual(state["refusedStreams"], 0)

    async def test_a_token_that_was_registered_again_after_its_end_stays(self):
        uid, device, token = await self.phone()
        await self.apns.script(tokens={token: [{"response": "gone", "timestamp": 1_700_000_000_000}]})
        await self.delivery(await self.send(uid))
        self.assertEqual(await self.devices(uid), [device])
        await self.delivery(await self.send(uid))
        await self.apns.pushes(count=1, token=token, status=200)

    async def test_after_goaway_a_push_arrives_with_the_same_id(self):
        for response, statuses in [
            ("goawayBefore", [None, 200]), ("refused", [None, 200]), ("close", [None, 200]), ("reset", [None, 200]),
            ("shutdown", [503, 200]),
        ]:
            uid, _, token = await self.phone()
            await self.apns.script(tokens={token: [response]})
            notification = await self.send(uid)
            self.assertEqual((await self.delivery(notification))["state"], "delivered", response)
            pushes = await self.apns.pushes(count=len(statuses), token=token)
            self.assertEqual([push["status"] for push in pushes], statuses, response)
            self.assertEqual(len({push["id"] for push in pushes}), 1, response)
        await self.no_errors(self.apns)

    @unittest.skipUnless(IS_SLOW, "waits for the deadline of an attempt: HATO_INTEROP_SLOW=1")
    async def test_a_push_without_a_response_is_sent_again_with_the_same_ids(self):
        phones = [await self.phone() for _ in range(4)]
        names = ["silent", "mute", "endless", "garbage"]
        await self.apns.script(tokens={
            token: ["silent" if name == "silent" else {"response": name, "times": 1}]
            for (_, _, token), name in zip(phones, names)})
        await asyncio.gather(*(self.send(uid) for uid, _, _ in phones))
        for (_, _, token), name in zip(phones, names):
            await self.apns.pushes(count=1, token=token, status=200, timeout=RESEND)
            pushes = await self.apns.pushes(token=token)
            self.assertEqual(len({push["id"] for push in pushes}), 1, name)
            self.assertEqual(len({push["headers"]["apns-collapse-id"] for push in pushes}), 1, name)

    @unittest.skipUnless(IS_SLOW, "waits for a minute twice: HATO_INTEROP_SLOW=1")
    async def test_429_holds_back_one_device_only(self):
        slow, quick = await self.phone(), await self.phone()
        await self.apns.script(tokens={slow[2]: ["tooMany", "tooMany"]})
        await self.send(slow[0], quick[0])
        await self.apns.pushes(count=1, token=quick[2], status=200)
        await self.apns.pushes(count=1, token=slow[2], status=200, timeout=600)
        pushes = await self.apns.pushes(token=slow[2])
        self.assertEqual([push["status"] for push in pushes], [429, 429, 200])
        self.assertTrue(all(later["time"] - earlier["time"] >= 59 for earlier, later in zip(pushes, pushes[1:])))

    async def test_our_bug_is_dead_at_once_and_the_token_stays(self):
        uid, device, token = await self.phone()
        await self.apns.script(tokens={token: ["badCollapseId"]})
        delivery = await self.delivery(await self.send(uid))
        self.assertEqual((delivery["state"], delivery["attempts"]), ("dead", 1))
        self.assertIn("BadCollapseId", delivery["lastAttempt"]["error"])
        self.assertEqual(await self.devices(uid), [device])

    async def test_an_expired_provider_token_is_made_anew(self):
        uid, _, token = await self.phone()
        tokens = (await self.apns.state())["providerTokens"]
        await self.apns.script(tokens={token: ["expiredProviderToken"]})
        delivery = await self.delivery(await self.send(uid))
        self.assertEqual(delivery["state"], "delivered")
        statuses = [push["status"] for push in await self.apns.pushes(count=2, token=token)]
        self.assertEqual(statuses, [403, 200])
        self.assertLessEqual((await self.apns.state())["providerTokens"], tokens + 1)

    async def test_pushes_of_a_device_keep_their_order_and_the_newest_wins(self):
        uid, _, token = await self.phone()
        await self.apns.script(tokens={token: [{"response": "unavailable", "retryAfter": 1}]})
        for number in range(3):
            await self.send(uid, body=f"plain {number}")
        await self.apns.pushes(count=3, token=token, status=200)
        bodies = [
            push["payload"]["aps"]["alert"]["body"] for push in await self.apns.pushes(token=token, status=200)]
        self.assertEqual(len(bodies), 3)
        uid, _, token = await self.phone()
        await self.apns.script(tokens={token: [{"response": "ok", "delayMs": 1_500}]})
        first = await self.send(uid, body="first", options={"collapseKey": "c1"})
        await self.apns.pushes(count=1, token=token)
        middle = await self.send(uid, body="middle", options={"collapseKey": "c1"})
        last = await self.send(uid, body="last", options={"collapseKey": "c1"})
        for notification, state in [(first, "delivered"), (last, "delivered"), (middle, "dropped")]:
            self.assertEqual((await self.delivery(notification))["state"], state)
        pushes = await self.apns.pushes(count=2, token=token)
        self.assertEqual([push["payload"]["aps"]["alert"]["body"] for push in pushes], ["first", "last"])
        self.assertEqual({push["headers"]["apns-collapse-id"] for push in pushes}, {"c1"})

    async def test_members_of_the_platform_take_the_place_of_ours(self):
        uid, _, token = await self.phone()
        await self.send(uid, platforms={"apns": {
            "headers": {"apns-priority": "5"}, "aps": {"target-content-id": "c1"}, "payload": {"room": "r1"}}})
        push, = await self.apns.pushes(count=1, token=token)
        self.assertEqual(push["headers"]["apns-priority"], "5")
        self.assertEqual((push["payload"]["aps"]["target-content-id"], push["payload"]["room"]), ("c1", "r1"))
        with self.assertRaises(aiorpcx.RPCError):
            await self.send(uid, platforms={"apns": {"headers": {"apns-priority": "7"}}})

    async def test_a_wrong_token_is_refused_at_registration(self):
        for token in ("", "xyz", "abc", "ab" * 101):
            with self.assertRaises(aiorpcx.RPCError, msg=token):
                await self.register("apns", token=token)
        with self.assertRaises(aiorpcx.RPCError):
            await self.phone(environment="staging")


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

    async def test_the_old_call_arrives_as_valid_v1(self):
        """`sendToDevice` takes the payload of the function that Firebase's prototype chat had."""
        token = f"phone-{uuid.uuid4().hex}"
        result = await self.call("notifier.sendToDevice", token=token, payload={
            "notification": {"title": "マスオさんからのメッセージ", "body": "今行きます", "badge": "1", "sound": "default"},
        }, options={"priority": "high"})
        self.assertEqual((result["successCount"], result["failureCount"]), (1, 0))
        push, = await self.fcm.pushes(count=1, token=token, status=200)
        message = push["message"]
        self.assertEqual(message["notification"], {"title": "マスオさんからのメッセージ", "body": "今行きます"})
        android, apns = message["android"], message["apns"]
        self.assertEqual((android["priority"], android["notification"]["notification_count"]), ("HIGH", 1))
        self.assertEqual((apns["payload"]["aps"]["badge"], apns["payload"]["aps"]["sound"]), (1, "default"))
        self.assertEqual(apns["headers"]["apns-priority"], "10")
        await self.fcm.script(prefixes={"dead-": "unregistered", "bad-": "invalidToken"})
        for name, code in [
            ("dead-1", "messaging/registration-token-not-registered"),
            ("bad-1", "messaging/invalid-registration-token"),
        ]:
            result = await self.call("notifier.sendToDevice", token=name, payload={"notification": {"title": "x"}})
            self.assertEqual(result["results"][0]["error"]["code"], code)


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
            await self.apns.pushes(count=2, token=token, status=200)

    async def test_an_app_without_credentials_is_refused_by_name(self):
        with self.assertRaises(aiorpcx.RPCError) as found:
            await self.phone(app="unknown")
        self.assertIn("unknown", found.exception.message)


class RespondTest(PushTestCase):
    async def test_an_action_is_reported_once_by_the_device_that_has_the_notification(self):
        category = f"MARRY_{uuid.uuid4().hex[:8]}"
        await self.call("notifier.categories.set", id=category, actions=[
            {"id": "ACCEPT", "title": {"ja": "承認"}, "activation": "background", "destructive": False,
             "authenticationRequired": False},
            {"id": "REFUSE", "title": {"ja": "拒否"}, "activation": "foreground", "destructive": True,
             "authenticationRequired": False},
        ])
        uid, _, token = await self.phone(locale="ja-JP")
        other, _, other_token = await self.phone(locale="ja-JP")
        result = await self.call("notifier.send", to={"uids": [uid]}, notification={
            "body": "ぼくと結婚してください!"}, category=category)
        await self.send(other, category=category)
        push, = await self.apns.pushes(count=1, token=token)
        self.assertEqual(push["payload"]["aps"], {"alert": "ぼくと結婚してください!", "category": category})
        reply = push["payload"]["hato"]["reply"]
        other_push, = await self.apns.pushes(count=1, token=other_token)
        other_reply = other_push["payload"]["hato"]["reply"]

        async def respond(**params):
            return await self.session.send_request("notifier.respond", {
                "notification": result["notification"], "action": "ACCEPT", "replyToken": reply} | params)

        for wrong in (
            {"replyToken": other_reply}, {"replyToken": reply[:-4] + "AAAA"}, {"action": "MAYBE"}, {"text": "はい"},
        ):
            with self.assertRaises(aiorpcx.RPCError, msg=str(wrong)):
                await respond(**wrong)
        first = await respond()
        self.assertEqual(await respond(), first)
        with self.assertRaises(aiorpcx.RPCError):
            await respond(action="REFUSE")

    async def test_android_gets_the_actions_as_data(self):
        category = f"REPLY_{uuid.uuid4().hex[:8]}"
        await self.call("notifier.categories.set", id=category, actions=[
            {"id": "YES", "title": "はい", "activation": "background", "destructive": False,
             "authenticationRequired": False}])
        uid, _, token = await self.android()
        await self.send(uid, category=category)
        push, = await self.fcm.pushes(count=1, token=token)
        message = push["message"]
        self.assertNotIn("notification", message)
        self.assertEqual((message["android"]["priority"], message["data"]["title"]), ("HIGH", TITLE))
        self.assertEqual(json.loads(message["data"]["actions"])[0]["id"], "YES")
        self.assertTrue(push["name"].startswith(f"projects/{PROJECT}/messages/"))


if __name__ == "__main__":
    unittest.main()
