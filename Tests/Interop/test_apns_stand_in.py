"""The stand-in of APNs is proven by aioapns, and by httpx where aioapns cannot send what is wrong."""

import asyncio
import json
import logging
import ssl
import time
import unittest
import uuid
import warnings

import aioapns
import aioapns.connection
import h2.settings
import httpx
import jwt

import push_services
from push_services import KEY_ID, TEAM, TOPIC, APNs, StandInTestCase, device_token, eventually

# It logs what these tests do on purpose.
logging.getLogger("aioapns").setLevel(logging.CRITICAL)

PRODUCTION = aioapns.connection.APNsProductionClientProtocol
ALERT = {
    "aps": {"alert": {"title": "サザエさん", "body": "今行きます👨‍👩‍👧"}, "badge": 3, "sound": "default"},
    "hato": {"id": "n"},
}


def aioapns_client(keys, service, inactivity=10):
    """An APNs client of aioapns for a stand-in. It has no setting for the address."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = aioapns.APNs(
            key=keys.apns.private_text, key_id=KEY_ID, team_id=TEAM, topic=TOPIC,
            ssl_context=http2_context(service), max_connections=1)
    client.pool.protocol_class = type("LocalProtocol", (PRODUCTION,), {
        "APNS_SERVER": "127.0.0.1", "APNS_PORT": service.port, "INACTIVITY_TIME": inactivity})
    return client


def http2_context(service):
    context = ssl.create_default_context(cafile=service.ca)
    context.set_alpn_protocols(["h2"])
    return context


def notification(token, message=None, **members):
    members = {
        "push_type": aioapns.PushType.ALERT, "priority": 10, "time_to_live": 3_600, "collapse_key": "room-1"} | members
    return aioapns.NotificationRequest(token, message or ALERT, **members)


def provider_token(keys, key_id=KEY_ID, team=TEAM, age=0):
    claims = {"iss": team, "iat": int(time.time()) - age}
    return jwt.encode(claims, keys.apns.key, algorithm="ES256", headers={"kid": key_id})


class APNsTest(StandInTestCase):
    kind = APNs

    async def send(self, client, request):
        return await asyncio.wait_for(client.send_notification(request), push_services.DEADLINE)

    async def test_aioapns_sends_with_one_stream_and_then_many(self):
        client = aioapns_client(self.keys, self.service)
        request = notification(device_token())
        result = await self.send(client, request)
        self.assertTrue(result.is_successful, result.description)
        await self.service.script(prefixes={"": {"response": "ok", "delayMs": 200}})
        results = await asyncio.gather(*(self.send(client, notification(device_token())) for _ in range(200)))
        self.assertTrue(all(result.is_successful for result in results))
        pushes = await self.service.pushes(count=201)
        first = pushes[0]
        self.assertEqual((first["token"], first["payload"]), (request.device_token, ALERT))
        self.assertEqual((first["id"], first["headers"]["apns-collapse-id"]), (request.notification_id, "room-1"))
        self.assertEqual(json.loads(first["body"]), ALERT)
        self.assertEqual(len({push["id"] for push in pushes}), 201)
        state = await self.service.state()
        self.assertEqual((state["protocolErrorCount"], state["warnings"]), (0, {}), state)
        self.assertEqual((state["connections"], state["providerTokens"], state["refusedStreams"]), (1, 1, 0))
        self.assertGreater(state["streamsMax"], 10)
        client.pool.close()

    async def test_scripts_decide_what_tokens_get(self):
        await self.service.script(
            tokens={"aa" * 32: {"response": "gone", "timestamp": 1_700_000_000_000}},
            prefixes={
                "bb": "bad", "cc": [{"response": "tooMany", "times": 2}],
                "ddd0": [{"response": "unavailable", "retryAfter": 1, "times": 2}], "dd": "forbidden",
            })
        client = aioapns_client(self.keys, self.service)

        async def responses(token, times):
            results = [await self.send(client, notification(token)) for _ in range(times)]
            return [(result.status, result.description) for result in results]

        gone = await self.send(client, notification("aa" * 32))
        self.assertEqual((gone.status, gone.description, gone.timestamp), ("410", "Unregistered", 1_700_000_000_000))
        self.assertEqual(await responses(device_token("bb"), 1), [("400", "BadDeviceToken")])
        for token in (device_token("cc"), device_token("cc")):
            self.assertEqual(await responses(token, 3), [("429", "TooManyRequests")] * 2 + [("200", None)])
        self.assertEqual(
            await responses(device_token("ddd0"), 3), [("503", "ServiceUnavailable")] * 2 + [("200", None)])
        self.assertEqual(await responses(device_token("dd1"), 1), [("403", "Forbidden")])
        self.assertEqual(await responses("ab" * 32, 1), [("200", None)])
        self.assertEqual((await self.service.state())["protocolErrorCount"], 0)
        with self.assertRaisesRegex(RuntimeError, "unknown response 'lost'"):
            await self.service.script(prefixes={"aa": "lost"})
        client.pool.close()

    async def test_what_is_sent_again_after_goaway_and_silence_has_the_same_id(self):
        # aioapns has no deadlines: it closes a connection after INACTIVITY_TIME without a request.
        client = aioapns_client(self.keys, self.service, inactivity=0.5)
        for response in ("goawayBefore", "silent", "mute", "close"):
            token = device_token()
            await self.service.script(tokens={token: [response]})
            result = await self.send(client, notification(token))
            self.assertTrue(result.is_successful, response)
            # More than two where this machine took longer than the time without a request.
            pushes = await self.service.pushes(count=2, token=token)
            self.assertEqual((pushes[0]["status"], {push["status"] for push in pushes[1:]}), (None, {200}), response)
            self.assertEqual({push["id"] for push in pushes}, {result.notification_id})
            self.assertNotEqual(pushes[0]["connection"], pushes[1]["connection"], response)
        await self.service.script(prefixes={"aa": ["goawayAfter"]})
        tokens = [device_token("aa"), device_token("ab")]

        async def is_closed():
            return not client.pool.connections

        for token in tokens:
            self.assertTrue((await self.send(client, notification(token))).is_successful)
            if token == tokens[0]:
                # aioapns sends over a connection with GOAWAY until it is closed.
                await eventually(is_closed)
        first, second = [(await self.service.pushes(count=1, token=token))[0] for token in tokens]
        self.assertNotEqual(first["connection"], second["connection"])
        self.assertEqual((await self.service.state())["protocolErrorCount"], 0)
        client.pool.close()

    async def test_every_header_and_limit_is_checked(self):
        token, identifier = device_token(), str(uuid.uuid4())
        good = {
            "authorization": f"bearer {provider_token(self.keys)}", "apns-topic": TOPIC, "apns-push-type": "alert",
            "apns-priority": "10", "apns-expiration": "0", "apns-id": identifier, "apns-collapse-id": "é" * 32,
        }
        background = {"aps": {"content-available": 1}}
        longest = {"aps": {"alert": ""}}
        longest["aps"]["alert"] = "x" * (4_096 - len(json.dumps(longest)))
        cases = [
            ({}, ALERT, 200, None),
            ({}, longest, 200, None),
            ({"apns-push-type": "background", "apns-priority": "5"}, background, 200, None),
            ({"apns-id": identifier.upper()}, ALERT, 400, "BadMessageId"),
            ({"apns-collapse-id": "é" * 32 + "x"}, ALERT, 400, "BadCollapseId"),
            ({"apns-priority": "7"}, ALERT, 400, "BadPriority"),
            ({"apns-push-type": "background"}, background, 400, "BadPriority"),
            ({"apns-push-type": "background", "apns-priority": "5"}, ALERT, 400, "InvalidPushType"),
            ({"apns-push-type": "call"}, ALERT, 400, "InvalidPushType"),
            ({}, background, 400, "InvalidPushType"),
            ({"apns-expiration": "soon"}, ALERT, 400, "BadExpirationDate"),
            ({"apns-expiration": "1700000000000"}, ALERT, 400, "BadExpirationDate"),
            ({"apns-topic": None}, ALERT, 400, "MissingTopic"),
            ({"apns-topic": "com.example.other"}, ALERT, 400, "BadTopic"),
            ({"apns-topic": f"{TOPIC}.voip"}, ALERT, 400, "BadTopic"),
            ({"authorization": None}, ALERT, 403, "MissingProviderToken"),
            ({"authorization": "bearer abc"}, ALERT, 403, "InvalidProviderToken"),
            ({"authorization": f"bearer {provider_token(self.keys, age=3_700)}"}, ALERT, 403, "ExpiredProviderToken"),
            ({"authorization": f"bearer {provider_token(self.keys, age=9)}"}, ALERT, 429,
             "TooManyProviderTokenUpdates"),
            ({"authorization": f"bearer {provider_token(self.keys, team='OTHER12345')}"}, ALERT, 403,
             "InvalidProviderToken"),
            ({"authorization": f"bearer {provider_token(self.keys, key_id='OTHER12345')}"}, ALERT, 403,
             "InvalidProviderToken"),
            ({}, None, 400, "PayloadEmpty"),
            ({}, longest | {"x": 1}, 413, "PayloadTooLarge"),
            ({}, {"alert": "x"}, 400, "PayloadEmpty"),
            ({}, {"aps": {"alert": "x", "badge": "3"}}, 400, "PayloadEmpty"),
            ({}, {"aps": {"alert": {"text": "x"}}}, 400, "PayloadEmpty"),
            ({}, {"aps": {"alert": "x", "room": "x"}}, 400, "PayloadEmpty"),
        ]
        async with httpx.AsyncClient(
                http2=True, verify=ssl.create_default_context(cafile=self.service.ca), trust_env=False) as client:
            for headers, payload, status, reason in cases:
                merged = {name: value for name, value in (good | headers).items() if value is not None}
                response = await client.post(
                    f"{self.service.url}/3/device/{token}", headers={k: v.encode() for k, v in merged.items()},
                    content=b"" if payload is None else json.dumps(payload).encode())
                self.assertEqual(response.http_version, "HTTP/2")
                found = response.json()["reason"] if response.content else None
                self.assertEqual((response.status_code, found), (status, reason), (headers, payload))
                self.assertEqual(response.headers.get("apns-id"), merged["apns-id"])
            for method, path, status, reason in [
                ("GET", f"/3/device/{token}", 405, "MethodNotAllowed"), ("POST", "/3/devices", 404, "BadPath"),
                ("POST", "/3/device/", 400, "MissingDeviceToken"),
            ]:
                response = await client.request(method, f"{self.service.url}{path}", headers={"apns-id": identifier})
                self.assertEqual((response.status_code, response.json()["reason"]), (status, reason))
            for unknown in ("xyz", "0" * 64):
                response = await client.post(
                    f"{self.service.url}/3/device/{unknown}", json=ALERT,
                    headers={name: value.encode() for name, value in good.items()})
                self.assertEqual((response.status_code, response.json()["reason"]), (400, "BadDeviceToken"))
            twice = [*((k, v.encode()) for k, v in good.items()), ("apns-topic", TOPIC.encode())]
            response = await client.post(f"{self.service.url}/3/device/{token}", headers=twice, json=ALERT)
            self.assertEqual(response.json()["reason"], "DuplicateHeaders")
        state = await self.service.state()
        refused = [case[3] for case in cases if case[3]]
        self.assertEqual([error["reason"] for error in state["protocolErrors"]][:len(refused)], refused)
        self.assertEqual(state["protocolErrorCount"], len(refused) + 4)

    async def test_streams_beyond_the_limit_and_a_client_without_http2_are_refused(self):
        context = ssl.create_default_context(cafile=self.service.ca)
        headers = {"authorization": f"bearer {provider_token(self.keys)}", "apns-topic": TOPIC}
        async with httpx.AsyncClient(http1=True, http2=False, verify=context, trust_env=False) as client:
            with self.assertRaises(httpx.TransportError):
                await client.post(f"{self.service.url}/3/device/{device_token()}", headers=headers, json=ALERT)
        self.assertEqual((await self.service.state())["protocolErrors"][0]["reason"], "ALPN")
        # A second stream before the first valid token, from a client that has acknowledged the limit.
        client = aioapns_client(self.keys, self.service)
        protocol = await client.pool.create_connection()
        client.pool.connections.append(protocol)

        async def has_limit():
            return protocol.free_channels.bound == 1

        async def is_refused():
            return (await self.service.state())["refusedStreams"] == 1

        await eventually(has_limit)
        protocol.conn.remote_settings = h2.settings.Settings(client=False)
        for stream in (1, 3):
            protocol.conn.send_headers(stream, [
                (":method", "POST"), (":scheme", "https"), (":authority", "127.0.0.1"),
                (":path", f"/3/device/{device_token()}"), *headers.items()])
        protocol.flush()
        await eventually(is_refused)
        error = (await self.service.state())["protocolErrors"][1]
        self.assertEqual((error["reason"], error["detail"]), ("HTTP/2", "stream 3 is one more than 1 at once"))
        client.pool.close()

    async def test_a_later_clock_ends_a_provider_token_and_another_authority_is_refused(self):
        async with httpx.AsyncClient(
                http2=True, verify=ssl.create_default_context(cafile=self.service.ca), trust_env=False) as client:
            url = f"{self.service.url}/3/device/{device_token()}"
            headers = {
                "authorization": f"bearer {provider_token(self.keys)}", "apns-topic": TOPIC, "apns-push-type": "alert"}
            self.assertEqual((await client.post(url, headers=headers, json=ALERT)).status_code, 200)
            await self.service.set(clockOffset=3_700)
            response = await client.post(url, headers=headers, json=ALERT)
            self.assertEqual(response.json()["reason"], "ExpiredProviderToken")
            with self.assertRaisesRegex(RuntimeError, "unknown setting"):
                await self.service.set(clock=1)
        async with httpx.AsyncClient(http2=True, trust_env=False) as client:
            with self.assertRaises(httpx.ConnectError):
                await client.post(url, headers=headers, json=ALERT)

if __name__ == "__main__":
    unittest.main()
