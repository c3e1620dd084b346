"""The notifier delivers over APNs."""

import asyncio
import time
import unittest
import uuid

import aiorpcx

from push_services import TOPIC, eventually
from push_stack import BODY, IS_SLOW, RESEND, TITLE, PushTestCase


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
        await self.send(uid, body="👨‍👩‍👧" * 225, options={"collapseKey": "雑" * 60})
        push, = await self.apns.pushes(count=1, token=token)
        self.assertLessEqual(len(push["headers"]["apns-collapse-id"].encode()), 64)
        self.assertLessEqual(len(push["body"].encode()), 4_096)
        body = push["payload"]["aps"]["alert"]["body"]
        self.assertEqual(body.rstrip("…").replace("👨‍👩‍👧", ""), "")
        self.assertTrue(body.endswith("…"))
        await self.no_errors(self.apns)

    async def test_ten_thousand_pushes_and_only_dead_tokens_are_dropped(self):
        users, rounds = 1_250, 8
        tokens = (await self.apns.state())["providerTokens"]
        await self.apns.script(prefixes={
            "aa": "gone", "bb": "bad", "cc": [{"response": "unavailable", "times": 2}],
            # So that several are open at a time.
            "dd": [{"response": "ok", "delayMs": 20, "times": 100_000}]})
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
            return (await self.call("notifier.stats"))["pending"] == 0

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
        state = await self.no_errors(self.apns)
        # Other tests have had their own before; the other environment has one, too.
        self.assertLessEqual(state["providerTokens"], max(1, tokens) + 1)
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
        for token in ("", "xyz", "abc", "ab" * 201):
            with self.assertRaises(aiorpcx.RPCError, msg=token):
                await self.register("apns", token=token)
        with self.assertRaises(aiorpcx.RPCError):
            await self.phone(environment="staging")


if __name__ == "__main__":
    unittest.main()
