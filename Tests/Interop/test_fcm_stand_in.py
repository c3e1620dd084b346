"""The stand-in of FCM is proven by firebase-admin, and by httpx where firebase-admin cannot send what is wrong."""

import asyncio
import os
import ssl
import unittest
import unittest.mock
import uuid
import warnings

import firebase_admin
import httpx
from firebase_admin import credentials, exceptions, messaging

import push_services
from push_services import FCM, StandInTestCase


class FCMTest(StandInTestCase):
    """firebase-admin takes the token endpoint from the service account, but has the address of FCM in a constant."""

    kind = FCM

    async def asyncSetUp(self):
        await super().asyncSetUp()
        address = self.service.url + "/v1/projects/{0}/messages:send"
        for patch in (
            unittest.mock.patch.object(messaging._MessagingService, "FCM_URL", address),
            unittest.mock.patch.dict(os.environ, {"REQUESTS_CA_BUNDLE": self.service.ca, "SSL_CERT_FILE": self.service.ca}),
        ):
            self.enterContext(patch)
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        self.app = firebase_admin.initialize_app(credentials.Certificate(self.service.account), name=str(uuid.uuid4()))
        self.addCleanup(firebase_admin.delete_app, self.app)

    def message(self, **members):
        return messaging.Message(**({
            "token": "phone-1", "notification": messaging.Notification("サザエさん", "今行きます👨‍👩‍👧"),
            "data": {"transition_type": "room", "room_id": "r1"},
            "android": messaging.AndroidConfig(
                priority="high", ttl=3_600, collapse_key="room:r1", notification=messaging.AndroidNotification(
                    channel_id="messages", color="#ff8800", sound="default", notification_count=3, visibility="private",
                    click_action="OPEN_ROOM", vibrate_timings_millis=[100, 50],
                    light_settings=messaging.LightSettings("#ff8800", 200, 1_500))),
            "apns": messaging.APNSConfig(
                headers={"apns-priority": "10", "apns-collapse-id": "room:r1"}, payload=messaging.APNSPayload(
                    messaging.Aps(badge=3, sound="default", category="REPLY", thread_id="r1", mutable_content=True))),
            "webpush": messaging.WebpushConfig(
                headers={"TTL": "3600", "Urgency": "high"}, notification=messaging.WebpushNotification("サザエさん"),
                fcm_options=messaging.WebpushFCMOptions(link="https://chat.example.com/r1")),
        } | members))

    async def send(self, message, dry_run=False):
        return await asyncio.to_thread(messaging.send, message, dry_run, self.app)

    async def test_the_sdk_sends_and_fetches_one_access_token(self):
        name = await self.send(self.message())
        self.assertRegex(name, r"^projects/hato-chat/messages/0:\w+$")
        await self.send(self.message(token=None, fid="installation-1"))
        await self.send(self.message(token=None, topic="news"), dry_run=True)
        pushes = await self.service.pushes(count=3)
        self.assertEqual(
            [(push["target"], push["token"], push["validateOnly"], push["status"]) for push in pushes],
            [("token", "phone-1", False, 200), ("fid", "installation-1", False, 200), ("topic", "news", True, 200)])
        self.assertEqual(pushes[0]["name"], name)
        message = pushes[0]["message"]
        self.assertEqual(message["notification"], {"title": "サザエさん", "body": "今行きます👨‍👩‍👧"})
        self.assertEqual((message["android"]["ttl"], message["apns"]["payload"]["aps"]["badge"]), ("3600s", 3))
        state = await self.service.state()
        self.assertEqual((state["oauthFetches"], state["oauthRefused"], state["protocolErrorCount"]), (1, 0, 0), state)
        self.assertEqual(state["audiences"], ["https://oauth2.googleapis.com/token"])
        self.assertGreater(state["http1Requests"], 0)

    async def test_the_asynchronous_sdk_sends_over_http2(self):
        await self.service.script(prefixes={"": {"response": "ok", "delayMs": 100}})
        batch = await messaging.send_each_async(
            [self.message(token=f"phone-{number}") for number in range(20)], False, self.app)
        self.assertEqual((batch.success_count, batch.failure_count), (20, 0), [
            response.exception for response in batch.responses])
        state = await self.service.state()
        self.assertEqual((state["pushes"], state["protocolErrorCount"]), (20, 0))
        self.assertGreater(state["streamsMax"], 1)

    async def test_scripts_give_each_kind_of_error(self):
        kinds = {
            "unregistered": messaging.UnregisteredError, "invalidToken": exceptions.InvalidArgumentError,
            "invalidArgument": exceptions.InvalidArgumentError, "senderIdMismatch": messaging.SenderIdMismatchError,
            "quotaExceeded": messaging.QuotaExceededError, "thirdPartyAuthError": messaging.ThirdPartyAuthError,
            "apnsAuthError": messaging.ThirdPartyAuthError, "unauthenticated": exceptions.UnauthenticatedError,
            "permissionDenied": exceptions.PermissionDeniedError, "badGateway": exceptions.FirebaseError,
            "gatewayTimeout": exceptions.FirebaseError,
        }
        await self.service.script(tokens={name: name for name in kinds} | {"once": ["unavailable"], "twice": ["internal"]})

        async def kind(name):
            with self.assertRaises(exceptions.FirebaseError) as found:
                await self.send(self.message(token=name))
            return type(found.exception), found.exception

        for name, error in zip(kinds, await asyncio.gather(*map(kind, kinds))):
            self.assertTrue(issubclass(error[0], kinds[name]), (name, error))
        # The SDK repeats 500 and 503 itself.
        for token in ("once", "twice"):
            await self.send(self.message(token=token))
            statuses = [push["status"] for push in await self.service.pushes(count=2, token=token)]
            self.assertEqual(statuses, [503 if token == "once" else 500, 200])
        self.assertEqual((await self.service.state())["protocolErrorCount"], 0)

    async def test_an_access_token_that_is_revoked_is_fetched_again(self):
        await self.send(self.message())
        await self.service.set(revoke=True)
        await self.send(self.message())
        state = await self.service.state()
        self.assertEqual((state["oauthFetches"], state["unauthorized"]), (2, 1))

    async def test_faults_look_alike_over_both_versions_of_http(self):
        await self.send(self.message())
        token = await asyncio.to_thread(lambda: self.app.credential.get_access_token().access_token)
        faults = {
            "silent": httpx.ReadTimeout, "mute": httpx.ReadTimeout, "close": httpx.TransportError,
            "reset": httpx.TransportError, "goawayBefore": httpx.TransportError,
        }
        await self.service.script(tokens={name: name for name in [*faults, "garbage", "endless"]})
        url = f"{self.service.url}/v1/projects/{push_services.PROJECT}/messages:send"
        for is_http2 in (False, True):
            async with httpx.AsyncClient(
                    http2=is_http2, verify=ssl.create_default_context(cafile=self.service.ca), trust_env=False,
                    headers={"authorization": f"Bearer {token}"},
                    timeout=httpx.Timeout(push_services.DEADLINE, read=0.3)) as client:
                for name, error in faults.items():
                    with self.subTest(name, http2=is_http2), self.assertRaises(error):
                        await client.post(url, json={"message": {"token": name}})
            async with httpx.AsyncClient(
                    http2=is_http2, verify=ssl.create_default_context(cafile=self.service.ca), trust_env=False,
                    headers={"authorization": f"Bearer {token}"}, timeout=push_services.DEADLINE) as client:
                response = await client.post(url, json={"message": {"token": "garbage"}})
                self.assertEqual((response.status_code, response.content[:2]), (200, b"\x00\xff"))
                size = 0
                async with client.stream("POST", url, json={"message": {"token": "endless"}}) as response:
                    async for data in response.aiter_bytes():
                        size += len(data)
                        if size > 4 << 20:
                            break
                self.assertEqual(response.http_version, "HTTP/2" if is_http2 else "HTTP/1.1")
        self.assertEqual((await self.service.state())["protocolErrorCount"], 0)

    async def test_a_token_endpoint_that_lies(self):
        for oauth in ("refuse", "noToken", "garbage"):
            await self.service.set(oauth=oauth)
            with self.assertRaises(Exception, msg=oauth):
                await self.send(self.message())
        await self.service.set(oauth="ok", expiresIn=1)
        await self.send(self.message())
        state = await self.service.state()
        self.assertEqual((state["pushes"], state["oauthFetches"]), (1, 4))

    async def test_an_assertion_of_another_key_gets_no_access_token(self):
        account = self.service.account | {"private_key": self.keys.pair(
            "other.pem", push_services.rsa.generate_private_key(65_537, 2_048)).private_text}
        app = firebase_admin.initialize_app(credentials.Certificate(account), name=str(uuid.uuid4()))
        self.addCleanup(firebase_admin.delete_app, app)
        with self.assertRaisesRegex(Exception, "invalid_grant"):
            await asyncio.to_thread(messaging.send, self.message(), False, app)
        state = await self.service.state()
        self.assertEqual((state["pushes"], state["protocolErrors"][0]["reason"]), (0, "OAuth"))

    async def test_what_v1_does_not_take_is_refused_by_name(self):
        """The SDK refuses most of this itself, so that its access token is used by httpx."""
        await self.send(self.message())
        token = await asyncio.to_thread(lambda: self.app.credential.get_access_token().access_token)
        target = {"token": "phone-1"}
        cases = [
            (target | {"android": {"notification": {"badge": "1"}}}, 'Unknown name "badge" at \'message.android.not'),
            (target | {"notification": {"title": "x", "sound": "default"}}, 'Unknown name "sound" at'),
            (target | {"data": {"count": 3}}, r"Invalid value at 'message.data\[0\].value' \(TYPE_STRING\), 3"),
            (target | {"data": {"from": "x"}}, "Invalid data payload key: from"),
            (target | {"data": {"google.x": "x"}}, "Invalid data payload key: google.x"),
            (target | {"data": {"gcm_x": "x"}}, "Invalid data payload key: gcm_x"),
            (target | {"android": {"ttl": "60"}}, "Invalid value at 'message.android.ttl'"),
            (target | {"android": {"ttl": "2419201s"}}, "Invalid time to live"),
            (target | {"android": {"priority": "urgent"}}, "Invalid value at 'message.android.priority'"),
            (target | {"topic": "news"}, "Exactly one of"),
            ({"data": {"a": "b"}}, "Exactly one of"),
            (target | {"data": {"text": "x" * 4_093}}, "too big"),
            (target | {"apns": {"payload": {"aps": {"badge": "3"}}}}, "aps.badge is not a number"),
            (target | {"webpush": {"headers": {"Urgency": "now"}}}, "Invalid Urgency"),
        ]
        accepted = [
            target | {"data": {"text": "x" * 4_092}}, {"fid": "f", "android": {"ttl": "0.5s", "collapseKey": "c"}},
            {"condition": "'a' in topics", "android": {"ttl": "2419200s"}},
        ]
        async with httpx.AsyncClient(
                http2=True, verify=ssl.create_default_context(cafile=self.service.ca), trust_env=False,
                headers={"authorization": f"Bearer {token}"}) as client:
            url = f"{self.service.url}/v1/projects/{push_services.PROJECT}/messages:send"
            for message in accepted:
                response = await client.post(url, json={"message": message})
                self.assertEqual(response.status_code, 200, response.text)
            for message, text in cases:
                response = await client.post(url, json={"message": message})
                self.assertEqual(response.status_code, 400, message)
                error = response.json()["error"]
                self.assertRegex(error["message"], text)
                self.assertIn("type.googleapis.com/google.rpc.BadRequest", [
                    detail["@type"] for detail in error["details"]])
            response = await client.post(url.replace(push_services.PROJECT, "other"), json={"message": target})
            self.assertEqual((response.status_code, "details" in response.json()["error"]), (403, False))
        self.assertEqual((await self.service.state())["protocolErrorCount"], len(cases) + 1)

if __name__ == "__main__":
    unittest.main()
