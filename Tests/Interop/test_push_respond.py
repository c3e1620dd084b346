"""What users do with a notification comes back from phones and browsers, with what the push had alone."""

import json
import unittest
import uuid

import aiorpcx

from push_services import DEADLINE
from push_stack import TITLE, PushTestCase

UNAUTHENTICATED, FAILED_PRECONDITION, INVALID_ARGUMENT = -32001, -32005, -32008


def action(identifier, title, activation="background", **members):
    return {"id": identifier, "title": title, "activation": activation} | members


class RespondTest(PushTestCase):
    async def asyncSetUp(self):
        await super().asyncSetUp()
        sessions = []
        for service in ("auth", "messages"):
            sessions.append(await self.enterAsyncContext(aiorpcx.connect_rs(*self.stack.address(service))))
            sessions[-1].sent_request_timeout = DEADLINE
        self.auth, self.messages = sessions

    async def user(self):
        """The uid of a new account: only those that there are may act."""
        return (await self.auth.send_request("auth.signUp", {"displayName": "サザエ"}))["uid"]

    async def category(self, *actions):
        identifier = f"C_{uuid.uuid4().hex[:12]}"
        await self.call("notifier.categories.set", id=identifier, actions=list(actions))
        return identifier

    async def respond(self, hato, **params):
        """As an app does it: without any credential but the reply token."""
        return await self.session.send_request("notifier.respond", {
            "notification": hato["id"], "replyToken": hato["reply"]} | params)

    async def refusal(self, hato, **params):
        with self.assertRaises(aiorpcx.RPCError, msg=str(params)) as found:
            await self.respond(hato, **params)
        return found.exception.code

    async def apns_hato(self, token):
        push, = await self.apns.pushes(count=1, token=token)
        return push["payload"]["hato"]

    async def test_an_action_counts_once_from_the_device_that_has_the_notification(self):
        category = await self.category(
            action("ACCEPT", {"ja": "承認"}), action("REFUSE", {"ja": "拒否"}, "foreground", destructive=True))
        uid, _, token = await self.phone(uid=await self.user(), locale="ja-JP")
        _, _, second = await self.phone(uid=uid)
        other, _, other_token = await self.phone(uid=await self.user())
        notification = (await self.call(
            "notifier.send", to={"uids": [uid]}, notification={"body": "ぼくと結婚してください!"},
            category=category))["notification"]
        await self.send(other, category=category)
        push, = await self.apns.pushes(count=1, token=token)
        self.assertEqual(push["payload"]["aps"], {"alert": "ぼくと結婚してください!", "category": category})
        hato = push["payload"]["hato"]
        self.assertEqual(hato["id"], notification)
        other_hato = await self.apns_hato(other_token)
        forged = hato["reply"][:-4] + ("AAAA" if hato["reply"][-4:] != "AAAA" else "BBBB")
        for code, params in [
            (INVALID_ARGUMENT, {"action": "ACCEPT", "replyToken": other_hato["reply"]}),
            (UNAUTHENTICATED, {"action": "ACCEPT", "replyToken": forged}),
            (INVALID_ARGUMENT, {"action": "MAYBE"}), (INVALID_ARGUMENT, {"action": "ACCEPT", "text": "はい"}),
        ]:
            self.assertEqual(await self.refusal(hato, **params), code, str(params))
        first = await self.respond(hato, action="ACCEPT")
        self.assertEqual(first, {"effect": "none"})
        self.assertEqual(await self.respond(hato, action="ACCEPT"), first)
        # The user's other phone has a token of its own, and the same choice.
        again = await self.apns_hato(second)
        self.assertNotEqual(again["reply"], hato["reply"])
        self.assertEqual(await self.respond(again, action="ACCEPT"), first)
        self.assertEqual(await self.refusal(again, action="REFUSE"), FAILED_PRECONDITION)

    async def test_a_text_reply_is_in_the_chat_once_as_its_user(self):
        message = {"senderId": "{uid}", "senderName": "{name}", "text": "{text}"}
        category = await self.category(action(
            "REPLY", "返信", input={"button": "送信"},
            effect={"push": {"path": "/chats/{thread}/messages", "value": message}}))
        uid, device, token = await self.phone(uid=await self.user())
        thread = f"c-{uuid.uuid4().hex[:12]}"
        await self.send(uid, category=category, options={"thread": thread})
        hato = await self.apns_hato(token)
        self.assertEqual(await self.refusal(hato, action="REPLY"), INVALID_ARGUMENT, "it has no text")
        for _ in range(2):
            self.assertEqual(await self.respond(hato, action="REPLY", text="おかえり"), {"effect": "done"})
        node = await self.messages.send_request("messages.get", {
            "auth": self.stack.admin_key, "path": f"/chats/{thread}/messages"})
        self.assertEqual(list(node["value"].values()), [
            {"senderId": uid, "senderName": "サザエ", "text": "おかえり"}])
        # The token ends with the registration of its device.
        await self.call("notifier.devices.unregister", device=device)
        self.assertEqual(await self.refusal(hato, action="REPLY", text="おかえり"), UNAUTHENTICATED)

    async def test_android_gets_the_actions_as_data(self):
        category = await self.category(action("YES", "はい"), action("REPLY", "返信", input={"button": "送信"}))
        uid, _, token = await self.android(uid=await self.user(), locale="ja-JP")
        await self.send(uid, category=category)
        push, = await self.fcm.pushes(count=1, token=token)
        message = push["message"]
        self.assertNotIn("notification", message)
        self.assertEqual((message["android"]["priority"], message["data"]["title"]), ("HIGH", TITLE))
        self.assertEqual([one["id"] for one in json.loads(message["data"]["actions"])], ["YES", "REPLY"])
        # The same project's Apple devices show their buttons by the category.
        self.assertEqual(message["apns"]["payload"]["aps"]["category"], category)
        hato = json.loads(message["data"]["hato"])
        self.assertEqual(await self.respond(hato, action="displayed"), {"effect": "none"})
        self.assertEqual(await self.respond(hato, action="YES"), {"effect": "none"})
        await self.no_errors(self.fcm)

    async def test_browsers_get_two_actions_and_report_the_choice(self):
        category = await self.category(*(action(f"A{number}", f"Choice {number}") for number in range(3)))
        uid, _, identifier = await self.browser(await self.user())
        await self.send(uid, category=category)
        push, = await self.webpush.pushes(count=1, token=identifier)
        message = json.loads(push["text"])
        shown = message["notification"]
        self.assertEqual([one["action"] for one in shown["actions"]], ["A0", "A1"])
        self.assertEqual([one["title"] for one in shown["actions"]], ["Choice 0", "Choice 1"])
        # Only a service worker can report a choice.
        self.assertTrue(message["mutable"])
        hato = shown["data"]["hato"]
        self.assertEqual(await self.respond(hato, action="opened"), {"effect": "none"})
        self.assertEqual(await self.respond(hato, action="A1"), {"effect": "none"})
        self.assertEqual(await self.refusal(hato, action="A0"), FAILED_PRECONDITION)
        await self.no_errors(self.webpush)


if __name__ == "__main__":
    unittest.main()
