"""E-mails of the notifier: aiosmtpd, an independent SMTP server with TLS and sign-in, receives them, and Python's email
package parses them."""

import asyncio
import email
import email.policy
import json
import os
import ssl
import tempfile
import time
import unittest
import uuid

import aiorpcx
import trustme
from aiosmtpd.smtp import SMTP, AuthResult

from push_services import DEADLINE, eventually
from stack import Stack

USER, PASSWORD, SENDER = "hato", "fly me home", "サザエのチャット <chat@example.com>"
WAIT, PAUSE = 3, 5


class Mailboxes:
    """Keeps what arrives, and refuses what a test says."""

    def __init__(self):
        self.envelopes = []
        self.commands = []
        self.gone = set()
        self.password = PASSWORD.encode()

    def authenticate(self, server, session, envelope, mechanism, data):
        return AuthResult(success=data.password == self.password, handled=False)

    async def handle_MAIL(self, server, session, envelope, address, options):
        self.commands.append("MAIL")
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address in self.gone:
            return f"550 5.1.1 <{address}>: no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.envelopes.append((time.monotonic(), envelope))
        return "250 OK"


class PushMailTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="hato-push-mail-"))
        authority = trustme.CA()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("localhost").configure_cert(context)
        self.mailboxes = Mailboxes()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: SMTP(
                self.mailboxes, loop=loop, tls_context=context, require_starttls=True, auth_required=True,
                authenticator=self.mailboxes.authenticate), "127.0.0.1", 0)
        self.addCleanup(server.close)
        port = server.sockets[0].getsockname()[1]
        authority.cert_pem.write_to_path(os.path.join(folder, "ca.pem"))
        self.write(folder, "password", PASSWORD + "\n")
        mail = {
            "url": f"smtp://{USER}@localhost:{port}", "from": SENDER, "password-file": "password",
            "authority-file": "ca.pem",
        }
        path = self.write(folder, "apps.yaml", json.dumps({"default": {"mail": mail}}))
        stack = Stack(
            "--apps-file", path, "--digest-wait-seconds", str(WAIT), "--digest-pause-seconds", str(PAUSE))
        self.stack = await asyncio.to_thread(stack.__enter__)
        self.addAsyncCleanup(asyncio.to_thread, stack.__exit__)
        self.auth, self.notifier = [
            await self.enterAsyncContext(aiorpcx.connect_rs(*self.stack.address(service)))
            for service in ("auth", "notifier")]

    @staticmethod
    def write(folder, name, text):
        path = os.path.join(folder, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        return path

    async def call(self, session, method, **params):
        return await session.send_request(method, {"auth": self.stack.admin_key} | params)

    async def user(self, is_verified=True):
        """A new user's address, uid and ID token."""
        address = f"masuo-{uuid.uuid4().hex[:12]}@example.com"
        password = "sazae-and-friends"
        signed_up = await self.auth.send_request("auth.signUp", {"email": address, "password": password})
        uid = signed_up["localId"] if "localId" in signed_up else signed_up["uid"]
        if is_verified:
            await self.call(self.auth, "auth.users.update", uid=uid, emailVerified=True)
        session = await self.auth.send_request("auth.signIn", {"email": address, "password": password})
        return address, uid, session["idToken"]

    async def mailbox(self):
        """A new user with a mailbox: its address and uid."""
        address, uid, _ = await self.signed_in_mailbox()
        return address, uid

    async def signed_in_mailbox(self):
        """The same, and the ID token."""
        address, uid, token = await self.user()
        await self.call(self.notifier, "notifier.devices.register", auth=token, platform="email", locale="ja-JP")
        return address, uid, token

    async def send(self, uid, title, body=None, thread="c1"):
        notification = {"title": title} | ({"body": body} if body else {})
        result = await self.call(
            self.notifier, "notifier.send", to={"uids": [uid]}, notification=notification, options={"thread": thread})
        self.assertEqual(result["recipients"], 1)
        return result["notification"]

    async def mails(self, address, count):
        """The first mails to an address: each with the time of its arrival."""
        async def arrived():
            found = [(at, envelope) for at, envelope in self.mailboxes.envelopes if envelope.rcpt_tos == [address]]
            return found if len(found) >= count else None

        found = []
        for at, envelope in await eventually(arrived):
            message = email.message_from_bytes(envelope.content, policy=email.policy.default)
            self.assertEqual(message.defects, [])
            self.assertEqual(envelope.mail_from, "chat@example.com")
            self.assertEqual(message["To"].addresses[0].addr_spec, address)
            self.assertEqual(message["From"].addresses[0].display_name, "サザエのチャット")
            self.assertRegex(message["Message-ID"], r"^<ntf_[\w-]+@example\.com>$")
            self.assertEqual(message["Auto-Submitted"], "auto-generated")
            found.append((at, message))
        self.assertEqual(len(found), count)
        return found

    async def state(self, notification):
        delivery, = (await self.call(self.notifier, "notifier.status", notification=notification))["deliveries"]
        return delivery["state"], delivery.get("reason")

    async def ended(self, notification):
        async def state():
            found = await self.state(notification)
            return found if found[0] not in ("pending", "leased") else None

        return await eventually(state)

    @staticmethod
    def text(message):
        return message.get_body(("plain",)).get_content().replace("\r\n", "\n")

    async def test_a_thread_is_one_mail_and_then_a_digest(self):
        address, uid = await self.mailbox()
        first = await self.send(uid, "マスオさんからのメッセージ", "ただいま👨‍👩‍👧")
        (_, message), = await self.mails(address, 1)
        self.assertEqual(message["Subject"], "マスオさんからのメッセージ")
        self.assertEqual(self.text(message), "ただいま👨‍👩‍👧\n")
        self.assertEqual(await self.ended(first), ("delivered", None))
        others = [await self.send(uid, "マスオさんからのメッセージ", text) for text in ("今どこ?", "もう駅", "着いた")]
        (before, _), (at, digest) = await self.mails(address, 2)
        self.assertGreater(at - before, PAUSE - 0.5)
        self.assertEqual(digest["Subject"], "マスオさんからのメッセージ (+2)")
        self.assertEqual(self.text(digest), "マスオさんからのメッセージ\n今どこ?\n\nもう駅\n\n着いた\n")
        for notification in others:
            self.assertEqual(await self.ended(notification), ("delivered", None))

    async def test_a_phone_that_registers_is_enough(self):
        address, uid = await self.mailbox()
        waiting = await self.send(uid, "a")
        subscription = {
            "endpoint": f"https://localhost/{uuid.uuid4().hex}",
            "keys": {
                "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
                "auth": "BTBZMqHH6r4Tts7J_aSIgg",
            },
        }
        result = await self.call(
            self.notifier, "notifier.devices.register", platform="webpush", uid=uid, subscription=subscription)
        self.assertEqual(await self.state(waiting), ("dropped", "seen"))
        await self.call(self.notifier, "notifier.devices.unregister", device=result["device"])
        await self.send(uid, "b")
        (_, message), = await self.mails(address, 1)
        self.assertEqual(message["Subject"], "b")

    async def test_an_app_that_reports_or_reads_is_enough(self):
        address, uid, token = await self.signed_in_mailbox()
        reported = await self.send(uid, "a")
        await self.call(self.notifier, "notifier.respond", auth=token, notification=reported, action="displayed")
        self.assertEqual(await self.state(reported), ("dropped", "seen"))
        read = await self.send(uid, "b")
        await self.call(self.notifier, "notifier.badges.set", auth=token, thread="c1", count=0)
        self.assertEqual(await self.ended(read), ("dropped", "withdrawn"))
        taken_back, other = await self.send(uid, "c", thread="c2"), await self.send(uid, "d", thread="c2")
        await self.call(self.notifier, "notifier.withdraw", notification=taken_back)
        (_, message), = await self.mails(address, 1)
        self.assertEqual(message["Subject"], "d")
        self.assertEqual(await self.ended(other), ("delivered", None))
        self.assertEqual(await self.state(taken_back), ("dropped", "withdrawn"))

    async def test_words_that_are_kept_from_providers_are_in_no_mail(self):
        address, uid, token = await self.signed_in_mailbox()
        await self.call(self.notifier, "notifier.topics.subscribe", auth=token, topic="news")
        for to in ({"uids": [uid]}, {"topic": "news"}):
            await self.call(
                self.notifier, "notifier.send", to=to, notification={"title": "ひみつ", "body": "ひみつ"},
                options={"thread": "c1", "link": "https://example.com/himitsu"}, content="ids")
        (_, message), = await self.mails(address, 1)
        self.assertEqual(message["Subject"], "新着メッセージ2件")
        self.assertEqual(self.text(message), "新着メッセージ2件\n")
        for text in message.as_string(), str(message["Subject"]), self.text(message):
            self.assertNotIn("ひみつ", text)
            self.assertNotIn("himitsu", text)

    async def test_a_mailbox_that_is_gone_is_removed(self):
        address, uid = await self.mailbox()
        self.mailboxes.gone.add(address)
        notification = await self.send(uid, "a")
        self.assertEqual(await self.ended(notification), ("dropped", "device_gone"))
        self.assertEqual((await self.call(self.notifier, "notifier.devices.list", uid=uid))["devices"], [])
        delivery, = (await self.call(self.notifier, "notifier.status", notification=notification))["deliveries"]
        self.assertEqual(delivery["lastAttempt"]["status"], 550)
        self.assertNotIn(address, delivery["lastAttempt"]["error"])

    async def test_no_title_makes_a_header(self):
        address, uid = await self.mailbox()
        await self.send(uid, "a\r\nBcc: all@example.com\r\n\r\nbody", "x\r\n.\r\nQUIT")
        (_, message), = await self.mails(address, 1)
        self.assertEqual(message["Subject"], "a Bcc: all@example.com body")
        self.assertIsNone(message["Bcc"])
        self.assertEqual(self.text(message), "x\n.\nQUIT\n")

    async def test_an_address_that_is_not_verified_is_refused(self):
        _, uid, token = await self.user(is_verified=False)
        for params in ({"auth": token}, {"uid": uid}):
            with self.assertRaises(aiorpcx.RPCError) as found:
                await self.call(self.notifier, "notifier.devices.register", platform="email", **params)
            self.assertIn("verified", found.exception.message)

    async def test_check_signs_in_and_sends_nothing(self):
        async def problem():
            apps = (await self.call(self.notifier, "notifier.apps.check", app="default"))["apps"]
            found = {provider["platform"]: provider for provider in apps[0]["providers"]}["email"]
            return found["status"], found.get("problem")

        self.assertEqual(await problem(), ("ready", None))
        self.mailboxes.password = b"another"
        status, words = await problem()
        self.assertEqual(status, "paused")
        self.assertIn("535", words)
        self.assertNotIn(PASSWORD, words)
        self.assertEqual(self.mailboxes.commands, [])
        # Nothing is lost: it waits for the operator.
        address, uid = await self.mailbox()
        await self.send(uid, "a")

        async def is_paused():
            apps = (await self.call(self.notifier, "notifier.apps.list"))["apps"]
            return any(
                provider["platform"] == "email" and provider["status"] == "paused"
                for app in apps for provider in app["providers"])

        await eventually(is_paused)
        self.mailboxes.password = PASSWORD.encode()
        await self.call(self.notifier, "notifier.apps.resume", app="default", platform="email")
        await self.mails(address, 1)


if __name__ == "__main__":
    unittest.main()
