"""Keys, and the stand-ins of push services as programs with clients of their control endpoints."""

import asyncio
import base64
import contextlib
import dataclasses
import json
import os
import secrets
import select
import subprocess
import sys
import tempfile
import time
import unittest

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

DEADLINE = 60
KEY_ID, TEAM, TOPIC = "ABC1234567", "DEF1234567", "com.example.chat"
PROJECT, EMAIL, ACCOUNT_KEY_ID = "hato-chat", "backend@hato-chat.iam.gserviceaccount.com", "0123456789abcdef"
SUBJECT = "mailto:admin@example.com"


def device_token(prefix=""):
    """A new device token of APNs, with 64 hexadecimal digits."""
    return prefix + secrets.token_hex(32)[len(prefix):]


def private_pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


def public_pem(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


@dataclasses.dataclass
class KeyPair:
    """A key, with the paths of its private and public PEM."""
    key: object
    private_path: str
    public_path: str

    @property
    def private_text(self):
        return private_pem(self.key)

    @property
    def public_text(self):
        return public_pem(self.key)

    @property
    def point(self):
        """The public point in base64url, as browsers take it."""
        point = self.key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        return base64.urlsafe_b64encode(point).rstrip(b"=").decode()


class Keys:
    """New keys in a folder: of an APNs team (.p8), of a service account and of VAPID. No other user can read them."""

    def __init__(self, directory):
        self.directory = directory
        self.apns = self.pair("apns.p8", ec.generate_private_key(ec.SECP256R1()))
        self.other_apns = self.pair("other-apns.p8", ec.generate_private_key(ec.SECP256R1()))
        self.vapid = self.pair("vapid.pem", ec.generate_private_key(ec.SECP256R1()))
        self.account = self.pair("account.pem", rsa.generate_private_key(public_exponent=65_537, key_size=2_048))

    def pair(self, name, key):
        return KeyPair(key, self.write(name, private_pem(key)), self.write(f"{name}.pub", public_pem(key)))

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def service_account(self, token_uri):
        """The JSON of a service account as Google's console makes it, and the path of its file."""
        account = {
            "type": "service_account", "project_id": PROJECT, "private_key_id": ACCOUNT_KEY_ID,
            "private_key": self.account.private_text, "client_email": EMAIL, "client_id": "1", "token_uri": token_uri,
        }
        return account, self.write("service-account.json", json.dumps(account))


class Service:
    """A stand-in as a program, and a client of its control endpoint."""

    program = ""

    def __init__(self, *arguments):
        path = os.path.join(os.path.dirname(__file__), self.program)
        self.process = subprocess.Popen(
            [sys.executable, path, "--exit-with-stdin", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ready = json.loads(self.first_line())
        self.url, self.ca, self.port = self.ready["url"], self.ready["ca"], self.ready["port"]
        self.client = None

    async def connect(self):
        """Connects to the control endpoint, for the event loop that runs now."""
        self.client = httpx.AsyncClient(base_url=self.ready["control"], timeout=2 * DEADLINE, trust_env=False)

    def first_line(self):
        readable, _, _ = select.select([self.process.stdout], [], [], DEADLINE)
        line = self.process.stdout.readline() if readable else b""
        if not line:
            self.process.kill()
            raise RuntimeError(f"{self.program} was not ready within {DEADLINE} s")
        return line

    async def request(self, method, path, **arguments):
        response = await self.client.request(method, path, **arguments)
        if response.status_code != 200:
            raise RuntimeError(f"{method} {path}: {response.status_code} {response.text}")
        return response.json()

    async def state(self):
        return await self.request("GET", "/state")

    async def pushes(self, count=0, timeout=DEADLINE, **wanted):
        """What was received, once there are `count`; `token` and `status` select, `after` skips. Throws at the
        deadline."""
        deadline = time.monotonic() + timeout
        while True:
            # In parts: the stand-in ends longer waits.
            wait = min(DEADLINE, max(0, deadline - time.monotonic()))
            found = await self.request("GET", "/pushes", params={"count": count, "timeout": wait, **wanted})
            if found["isComplete"] or time.monotonic() >= deadline:
                break
        if not found["isComplete"]:
            state = await self.state()
            raise TimeoutError(f"{len(found['pushes'])} of {count} pushes after {timeout} s; {state}")
        return found["pushes"]

    async def script(self, tokens=None, prefixes=None, clear=False):
        await self.request("POST", "/scripts", json={
            "tokens": tokens or {}, "prefixes": prefixes or {}, "clear": clear})

    async def set(self, **settings):
        await self.request("POST", "/settings", json=settings)

    async def reset(self):
        """Makes all as after the start."""
        await self.request("POST", "/reset")

    async def disconnect(self):
        await self.client.aclose()

    def end(self):
        """Ends the program by closing its standard input."""
        self.process.stdin.close()
        try:
            self.process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class APNs(Service):
    program = "apns_stand_in.py"

    def __init__(self, keys, *arguments):
        super().__init__(
            "--key", f"{KEY_ID}={keys.apns.public_path}", "--team", TEAM, "--topic", TOPIC, *arguments)


class FCM(Service):
    program = "fcm_stand_in.py"

    def __init__(self, keys, *arguments):
        super().__init__(
            "--public-key", keys.account.public_path, "--key-id", ACCOUNT_KEY_ID, "--email", EMAIL,
            "--project", PROJECT, *arguments)
        self.account, self.account_path = keys.service_account(self.ready["tokenURI"])


class PlainFCM(FCM):
    """Without TLS, which the notifier calls on this machine only."""

    def __init__(self, keys):
        super().__init__(keys, "--plain")


class WebPush(Service):
    program = "webpush_stand_in.py"

    def __init__(self, _, *arguments):
        super().__init__(*arguments)

    async def subscribe(self, key=None):
        """A new subscription, as a browser gives it, and its id."""
        subscription = await self.request("POST", "/subscriptions", json={"key": key})
        return subscription, subscription["endpoint"].rsplit("/", 1)[1]

    async def unsubscribe(self, identifier):
        await self.request("DELETE", f"/subscriptions/{identifier}")


class PlainWebPush(WebPush):
    """Without TLS."""

    def __init__(self, keys):
        super().__init__(keys, "--plain")


class Webhooks(Service):
    """Receivers of webhooks."""

    program = "webhook_stand_in.py"

    def __init__(self, _, *arguments):
        super().__init__(*arguments)

    async def receiver(self, *secrets, identifier=None):
        """The URL and the id of a receiver that verifies with one of these secrets; new ones where it is known."""
        receiver = await self.request("POST", "/receivers", json={"id": identifier, "secrets": secrets})
        return receiver["url"], receiver["id"]


class PlainWebhooks(Webhooks):
    """Without TLS, which the notifier calls where private addresses are allowed."""

    def __init__(self, keys):
        super().__init__(keys, "--plain")


@contextlib.asynccontextmanager
async def push_services(*kinds):
    """Keys and running stand-ins: `async with push_services(APNs, FCM) as (keys, apns, fcm)`."""
    with tempfile.TemporaryDirectory(prefix="hato-push-keys-") as directory:
        keys = Keys(directory)
        services = []
        try:
            for kind in kinds:
                services.append(kind(keys))
                await services[-1].connect()
            yield keys, *services
        finally:
            for service in services:
                await service.disconnect()
                service.end()


class StandInTestCase(unittest.IsolatedAsyncioTestCase):
    """Tests of one stand-in, a program for all of them, that each finds as after its start."""

    kind = Service

    @classmethod
    def setUpClass(cls):
        cls.keys = Keys(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="hato-push-keys-")))
        cls.service = cls.kind(cls.keys)
        cls.addClassCleanup(cls.service.end)

    async def asyncSetUp(self):
        # unittest's debug mode keeps the stack of each task, and logs slow ones.
        asyncio.get_running_loop().set_debug(False)
        await self.service.connect()
        self.addAsyncCleanup(self.service.disconnect)
        await self.service.reset()


def apps_file(keys, apns=None, fcm=None, webpush=None):
    """The path of an apps file for these stand-ins. YAML: each JSON text is one. FCM and Web Push have no setting
    for an authority, so that their stand-ins are without TLS."""
    app = {}
    if apns:
        app["apns"] = {
            "key-file": keys.apns.private_path, "key-id": KEY_ID, "team-id": TEAM, "topic": TOPIC,
            "environment": "production", "url": apns.url, "ca-file": apns.ca,
        }
    if fcm:
        app["fcm"] = {"service-account-file": fcm.account_path, "url": fcm.url}
    if webpush:
        app["webpush"] = {"key-file": keys.vapid.private_path, "subject": SUBJECT, "allow-private": True}
    return keys.write("apps.yaml", json.dumps({"default": app}, indent=2))


async def eventually(condition, timeout=DEADLINE):
    """Waits until an asynchronous condition gives something true, and returns it."""
    deadline = time.monotonic() + timeout
    while True:
        found = await condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout} s")
        await asyncio.sleep(0.02)
