"""aiosmtpd, an independent SMTP server, receives every kind of mail, and Python's email package parses it."""

import asyncio
import email
import email.policy
import re
import unittest

import aiorpcx
from aiosmtpd.smtp import SMTP

from stack import Stack

DEADLINE = 60
ADDRESS = "masuo@例え.jp"
SUBJECTS = {
    "verifyEmail": "メールアドレスの確認", "passwordReset": "パスワードの再設定", "signIn": "ログイン",
    "changeEmail": "新しいメールアドレスの確認", "invite": "アカウントへのご招待",
    "recoverEmail": "メールアドレスが変更されました",
}


class Received:
    """Keeps the envelopes of mails."""

    def __init__(self):
        self.envelopes = asyncio.Queue()

    async def handle_DATA(self, server, session, envelope):
        await self.envelopes.put(envelope)
        return "250 OK"


class MailTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.received = Received()
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(
            lambda: SMTP(self.received, enable_SMTPUTF8=True, loop=loop), "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.stack = await asyncio.to_thread(Stack(
            "--mail-url", f"smtp://127.0.0.1:{port}", "--mail-tls", "none", "--mail-locale", "ja",
            "--mail-from", "サザエのチャット <chat@example.com>", "--action-url", "https://chat.example.com/account",
        ).__enter__)

    async def asyncTearDown(self):
        await asyncio.to_thread(self.stack.__exit__)
        self.server.close()

    async def mail(self, kind, to):
        """The next mail: its text, and the code of its link."""
        envelope = await asyncio.wait_for(self.received.envelopes.get(), DEADLINE)
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.assertEqual(message.defects, [])
        self.assertEqual(message["Subject"], SUBJECTS[kind])
        self.assertEqual(message["From"].addresses[0].display_name, "サザエのチャット")
        self.assertEqual(message["To"].addresses[0].addr_spec, to)
        self.assertEqual(envelope.rcpt_tos, [to])
        self.assertRegex(message["Message-ID"], r"^<[\w-]+@example\.com>$")
        self.assertTrue(all(len(line) <= 998 for line in envelope.content.split(b"\r\n")))
        text = message.get_body(("plain",)).get_content()
        code = re.search(r"https://chat\.example\.com/account\?mode=\w+&oobCode=([\w-]+)&lang=ja\r?\n", text)
        self.assertIsNotNone(code, text)
        return text, code.group(1)

    async def test_every_kind_of_mail_arrives_and_its_code_is_taken(self):
        host, port = self.stack.address("auth")
        key = self.stack.admin_key
        async with aiorpcx.connect_rs(host, port) as session:
            async def call(method, **params):
                return await session.send_request(method, params)

            ascii_address = "masuo@xn--r8jz45g.jp"
            await call("auth.users.invite", auth=key, email=ADDRESS)
            text, code = await self.mail("invite", ascii_address)
            self.assertIn(f"\n{code}\n", text.replace("\r\n", "\n"))
            await call("auth.code.apply", code=code, newPassword="sazae-and-friends")
            user = await call("auth.signIn", email=ADDRESS, password="sazae-and-friends")

            await call("auth.code.request", auth=user["idToken"], type="verifyEmail")
            text, code = await self.mail("verifyEmail", ascii_address)
            digits = re.search(r"\n(\d{6})\n", text.replace("\r\n", "\n")).group(1)
            self.assertEqual((await call("auth.code.apply", code=digits, email=ADDRESS))["type"], "verifyEmail")

            await call("auth.code.request", type="passwordReset", email=ADDRESS)
            _, code = await self.mail("passwordReset", ascii_address)
            await call("auth.code.apply", code=code, newPassword="isono-and-namihei")

            await call("auth.code.request", type="signIn", email=ADDRESS)
            _, code = await self.mail("signIn", ascii_address)
            user = await call("auth.signInWithCode", email=ADDRESS, code=code)

            await call("auth.code.request", auth=user["idToken"], type="changeEmail", newEmail="fuguta@example.com")
            _, code = await self.mail("changeEmail", "fuguta@example.com")
            await call("auth.code.apply", code=code)
            _, code = await self.mail("recoverEmail", ascii_address)
            found = await call("auth.code.apply", code=code)
            self.assertEqual(found, {"type": "recoverEmail", "email": ADDRESS})
            self.assertEqual((await call("auth.mail.list", auth=key))["mails"], [])


if __name__ == "__main__":
    unittest.main()
