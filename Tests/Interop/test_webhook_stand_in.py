"""The receiver of webhooks is proven by the reference library, standardwebhooks: what it signs is taken."""

import datetime
import json
import ssl
import unittest

import httpx
import standardwebhooks

from push_services import StandInTestCase, Webhooks

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
MESSAGE = {"type": "notification", "timestamp": "2026-11-28T12:00:00Z", "data": {"title": "サザエさん👨‍👩‍👧"}}


class WebhookTest(StandInTestCase):
    kind = Webhooks

    async def asyncSetUp(self):
        await super().asyncSetUp()
        self.client = await self.enterAsyncContext(httpx.AsyncClient(
            http2=True, verify=ssl.create_default_context(cafile=self.service.ca), trust_env=False))

    async def post(self, url, *secrets, identifier="msg_1", age=0, message=None, **headers):
        """The response to a message that the library signs, with each secret."""
        body = json.dumps(MESSAGE if message is None else message, ensure_ascii=False)
        time = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=age)
        signatures = [standardwebhooks.Webhook(secret).sign(identifier, time, body) for secret in secrets]
        signed = {
            "webhook-id": identifier, "webhook-timestamp": str(int(time.timestamp())),
            "webhook-signature": " ".join(signatures), "content-type": "application/json",
        }
        return await self.client.post(url, content=body, headers=signed | headers)

    async def test_what_the_library_signs_is_taken(self):
        url, identifier = await self.service.receiver(SECRET, OTHER)
        for secrets in ([SECRET], [OTHER], [OTHER, SECRET]):
            response = await self.post(url, *secrets)
            self.assertEqual((response.status_code, response.http_version), (204, "HTTP/2"), response.text)
        pushes = await self.service.pushes(count=3, token=identifier)
        self.assertEqual([push["verifiedBy"] for push in pushes], [[SECRET], [OTHER], [SECRET, OTHER]])
        self.assertEqual([push["body"] for push in pushes], [MESSAGE] * 3)
        self.assertEqual((await self.service.state())["protocolErrorCount"], 0)

    async def test_scripts_hold_as_often_as_they_say(self):
        url, identifier = await self.service.receiver(SECRET)
        await self.service.script(tokens={identifier: [
            {"response": "internal", "times": 2}, "gone", {"response": "redirect", "location": f"{url}x"},
            {"response": "unavailable", "retryAfter": 2}]})
        responses = [await self.post(url, SECRET) for _ in range(6)]
        self.assertEqual([response.status_code for response in responses], [500, 500, 410, 307, 503, 204])
        self.assertEqual((responses[3].headers["location"], responses[4].headers["retry-after"]), (f"{url}x", "2"))
        self.assertEqual((await self.service.state())["protocolErrorCount"], 0)

    async def test_what_is_wrong_is_refused(self):
        url, _ = await self.service.receiver(SECRET)
        self.assertEqual((await self.post(url, SECRET)).status_code, 204)
        cases = [
            (401, "the secret of another", self.post(url, OTHER)),
            (401, "six minutes ago", self.post(url, SECRET, age=360)),
            (401, "in six minutes", self.post(url, SECRET, age=-360)),
            (401, "the id of another message", self.post(url, SECRET, **{"webhook-id": "msg_2"})),
            (401, "no signature", self.post(url, SECRET, **{"webhook-signature": ""})),
            (400, "another type of content", self.post(url, SECRET, **{"content-type": "text/plain"})),
            (400, "the same webhook-id", self.post(url, SECRET, message=MESSAGE | {"type": "x"})),
            (400, "no data", self.post(url, SECRET, identifier="msg_3", message={"type": "x"})),
            (404, "another path", self.post(f"{url}x", SECRET)),
        ]
        for status, what, sending in cases:
            response = await sending
            self.assertEqual(response.status_code, status, (what, response.text))
        self.assertEqual((await self.client.get(url)).status_code, 405)
        self.assertEqual((await self.service.state())["protocolErrorCount"], len(cases) + 1)


if __name__ == "__main__":
    unittest.main()
