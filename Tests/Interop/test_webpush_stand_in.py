"""The stand-in of Web Push is proven by pywebpush, and by httpx where pywebpush cannot send what is wrong."""

import asyncio
import json
import os
import signal
import socket
import ssl
import time
import unittest

import httpx
import jwt
import pywebpush
import requests

import push_services
from push_services import SUBJECT, PlainWebPush, StandInTestCase, WebPush


class WebPushTest(StandInTestCase):
    kind = WebPush

    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.verify = self.service.ca
        self.addCleanup(self.session.close)

    async def send(self, subscription, text, claims=None, key=None, **members):
        """The status of what pywebpush sends."""
        def call():
            try:
                return pywebpush.webpush(
                    subscription, text, vapid_private_key=(key or self.keys.vapid).private_path,
                    vapid_claims={"sub": SUBJECT} | (claims or {}), requests_session=self.session,
                    timeout=push_services.DEADLINE, **members)
            except pywebpush.WebPushException as error:
                return error.response
        return await asyncio.to_thread(call)

    async def test_pywebpush_is_decrypted_and_verified(self):
        subscription, identifier = await self.service.subscribe(self.keys.vapid.point)
        text = json.dumps({"title": "サザエさん", "body": "今行きます👨‍👩‍👧"}, ensure_ascii=False)
        response = await self.send(subscription, text, ttl=60, headers={"Urgency": "high", "Topic": "room-1"})
        self.assertEqual((response.status_code, response.headers["ttl"]), (201, "60"), response.text)
        push, = await self.service.pushes(count=1, token=identifier)
        self.assertEqual((push["text"], push["padding"]), (text, 0))
        self.assertEqual(
            [push["headers"][name] for name in ("ttl", "urgency", "topic")], ["60", "high", "room-1"])
        self.assertEqual((push["vapid"]["aud"], push["vapid"]["sub"]), (self.service.url, SUBJECT))
        self.assertEqual((await self.send(subscription, "x" * 3_993)).status_code, 201)
        self.assertEqual((await self.send(subscription, None)).status_code, 201)
        self.assertEqual((await self.service.state())["protocolErrorCount"], 0)

    async def test_scripts_and_ended_subscriptions(self):
        subscription, identifier = await self.service.subscribe()
        await self.service.script(tokens={identifier: [
            {"response": "tooMany", "retryAfter": 1, "times": 2}, "unavailable",
            {"response": "redirect", "location": "https://192.0.2.1/"}]})
        self.session.max_redirects = 0
        responses = [await self.send(subscription, "x") for _ in range(3)]
        self.assertEqual([response.status_code for response in responses], [429, 429, 503])
        self.assertEqual(responses[0].headers["retry-after"], "1")
        with self.assertRaises(requests.TooManyRedirects):
            await self.send(subscription, "x")
        self.assertEqual((await self.send(subscription, "x")).status_code, 201)
        await self.service.unsubscribe(identifier)
        self.assertEqual((await self.send(subscription, "x")).status_code, 410)
        statuses = [push["status"] for push in await self.service.pushes(count=6, token=identifier)]
        self.assertEqual(statuses, [429, 429, 503, 307, 201, 410])
        self.assertEqual((await self.service.state())["protocolErrorCount"], 0)

    async def test_what_is_wrong_is_refused(self):
        subscription, _ = await self.service.subscribe(self.keys.vapid.point)
        other, _ = await self.service.subscribe()
        now = int(time.time())
        other_keys = subscription | {"keys": other["keys"]}
        unknown = subscription | {"endpoint": f"{self.service.url}/push/unknown"}
        cases = [
            (403, self.send(subscription, "x", {"aud": "https://push.example.com"})),
            (403, self.send(subscription, "x", {"exp": now + 86_500})),
            (403, self.send(subscription, "x", key=self.keys.other_apns)),
            (400, self.send(subscription, "x", headers={"Urgency": "now"})),
            (400, self.send(subscription, "x", headers={"Topic": "a" * 33})),
            (400, self.send(subscription, "x", headers={"TTL": "soon"})),
            (400, self.send(subscription, "x", content_encoding="aesgcm")),
            (413, self.send(subscription, "x" * 3_994)),
            (400, self.send(other_keys, "x")),
            (404, self.send(unknown, "x")),
        ]
        for number, (status, sending) in enumerate(cases):
            response = await sending
            self.assertEqual(response.status_code, status, (number, response.text))
        response = await asyncio.to_thread(
            self.session.post, subscription["endpoint"], headers={"ttl": "1"}, timeout=push_services.DEADLINE)
        self.assertEqual(response.status_code, 401)
        self.assertEqual((await self.service.state())["protocolErrorCount"], len(cases) + 1)

    async def test_a_body_is_taken_once_and_the_form_of_the_rfc_is_read(self):
        """httpx over HTTP/2, with a header of RFC 8292 (a space after the comma) and a body that is sent twice."""
        subscription, _ = await self.service.subscribe()
        body = pywebpush.WebPusher(subscription).encode(b"x")["body"]
        claims = {"aud": self.service.url, "exp": int(time.time()) + 60, "sub": SUBJECT}
        token = jwt.encode(claims, self.keys.vapid.key, algorithm="ES256")
        headers = {
            "authorization": f"vapid t={token}, k={self.keys.vapid.point}", "ttl": "0",
            "content-encoding": "aes128gcm"}
        async with httpx.AsyncClient(
                http2=True, verify=ssl.create_default_context(cafile=self.service.ca), trust_env=False) as client:
            responses = [
                await client.post(subscription["endpoint"], headers=headers, content=body) for _ in range(2)]
            forged = headers | {"authorization": f"vapid t={token[:-8]}AAAAAAAA, k={self.keys.vapid.point}"}
            responses.append(await client.post(subscription["endpoint"], headers=forged, content=body))
        self.assertEqual([response.status_code for response in responses], [201, 400, 403])
        self.assertEqual(responses[0].http_version, "HTTP/2")

class ProgramTest(unittest.IsolatedAsyncioTestCase):
    """The life of a stand-in as a program."""

    def test_it_ends_by_its_pid_and_with_its_input(self):
        for end in ("pid", "input"):
            service = WebPush(None)
            directory = os.path.dirname(service.ca)
            self.assertTrue(os.path.exists(service.ca))
            if end == "pid":
                os.kill(service.ready["pid"], signal.SIGTERM)
                self.assertEqual(service.process.wait(timeout=push_services.DEADLINE), 0)
            service.end()
            self.assertEqual(service.process.returncode, 0)
            self.assertFalse(os.path.exists(directory))

    async def test_it_is_plain_http_if_it_should_be(self):
        async with push_services.push_services(PlainWebPush) as (keys, service):
            subscription, identifier = await service.subscribe()
            self.assertTrue(subscription["endpoint"].startswith("http://127.0.0.1:"))
            await asyncio.to_thread(
                pywebpush.webpush, subscription, "x", vapid_private_key=keys.vapid.private_path,
                vapid_claims={"sub": SUBJECT}, timeout=push_services.DEADLINE)
            push, = await service.pushes(count=1, token=identifier)
            self.assertEqual((push["text"], push["vapid"]["aud"]), ("x", service.url))

    def test_a_certificate_for_another_name_and_half_a_record_are_no_handshake(self):
        service = WebPush(None, "--certificate-name", "push.example.com")
        self.addCleanup(service.end)
        context = ssl.create_default_context(cafile=service.ca)
        with self.assertRaises(ssl.SSLCertVerificationError):
            with socket.create_connection(("127.0.0.1", service.port), timeout=push_services.DEADLINE) as connection:
                context.wrap_socket(connection, server_hostname="127.0.0.1")
        port = service.ready["halfTLSRecordPort"]
        with socket.create_connection(("127.0.0.1", port), timeout=push_services.DEADLINE) as connection:
            self.assertEqual(connection.recv(1, socket.MSG_PEEK), b"\x16")
            connection.settimeout(0.2)
            with self.assertRaises(TimeoutError):
                context.wrap_socket(connection, server_hostname="127.0.0.1")


if __name__ == "__main__":
    unittest.main()
