"""A stand-in of a browser's Web Push service that has the browser's keys, too: RFC 8030, 8291 and 8292 over TLS with
HTTP/2 and HTTP/1.1. http-ece decrypts, py-vapid verifies signatures, PyJWT reads claims. What it refuses without a
script is an error of its client, which `/state` lists. See `stand_in.py`; scripts are by the id of a subscription.

More of the control endpoint: `POST /subscriptions {"id"?, "key"?}` makes one, as `PushSubscription.toJSON()` gives it,
for an applicationServerKey or for any; `DELETE /subscriptions/{id}` ends it. Settings: `clockOffset`.
"""

import base64
import binascii
import re
import secrets
import struct
import urllib.parse

import cryptography.exceptions
import http_ece
import jwt
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from py_vapid import Vapid02

from http2_server import FAULTS, Response, Server
from stand_in import StandIn, run

REFUSALS = {
    "badRequest": 400, "unauthorized": 401, "forbidden": 403, "notFound": 404, "gone": 410, "tooLarge": 413,
    "tooMany": 429, "internal": 500, "badGateway": 502, "unavailable": 503,
}
VAPID_SECONDS = 86_400
# Salt, record size, length of the key id, key; tag and delimiter.
OVERHEAD = 16 + 4 + 1 + 65 + 16 + 1


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Refusal(Exception):
    """A response that is no success, with what is wrong in words."""

    def __init__(self, status, detail):
        super().__init__(detail)
        self.status, self.detail = status, detail


class Subscription:
    """A subscription with the private key and the secret of its browser."""

    def __init__(self, identifier, key):
        self.identifier = identifier
        self.server_key = key
        self.private_key = ec.generate_private_key(ec.SECP256R1())
        self.secret = secrets.token_bytes(16)
        self.is_active = True

    def json(self, origin):
        point = self.private_key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        return {
            "endpoint": f"{origin}/push/{self.identifier}", "expirationTime": None,
            "keys": {"p256dh": encoded(point), "auth": encoded(self.secret)},
        }


class WebPushStandIn(StandIn):
    description = __doc__
    has_plain = True
    responses = FAULTS | set(REFUSALS) | {"ok", "accepted", "redirect", "garbage"}

    def __init__(self, options):
        super().__init__(options)
        self.server = Server(self.respond, self.protocol_error)
        self.reset()

    def reset(self):
        super().reset()
        self.server.reset()
        self.subscriptions = {}
        self.seen_keys, self.vapid_tokens = set(), set()

    async def start(self, context):
        port = await self.server.start(context)
        self.origin = f"{'https' if context else 'http'}://127.0.0.1:{port}"
        return {"port": port}

    def state(self):
        return super().state() | self.server.state() | {
            "vapidTokens": len(self.vapid_tokens), "subscriptions": len(self.subscriptions),
        }

    def add_routes(self, application):
        application.add_routes([
            web.post("/subscriptions", self.post_subscription),
            web.delete("/subscriptions/{id}", self.delete_subscription),
        ])

    async def post_subscription(self, request):
        body = await request.json()
        identifier = body.get("id") or secrets.token_urlsafe(24)
        subscription = self.subscriptions[identifier] = Subscription(identifier, body.get("key"))
        return web.json_response(subscription.json(self.origin))

    async def delete_subscription(self, request):
        self.subscriptions[request.match_info["id"]].is_active = False
        return web.json_response({})

    def respond(self, request):
        path = urllib.parse.urlsplit(request.path).path
        identifier = path.removeprefix("/push/")
        push = {
            "token": identifier, "status": None, "script": None, "text": None, "vapid": None, "reason": None,
            "headers": {name: value for name, value in request.headers if name != "authorization"},
            "bytes": len(request.body), "padding": None, "connection": request.connection.number,
        }
        try:
            subscription = self.subscription(request, path, identifier)
            self.check(request, subscription, push)
        except Refusal as refusal:
            push["reason"] = refusal.detail
            response = Response(refusal.status, {"content-type": "text/plain"}, refusal.detail.encode())
            # To send to one that has ended is no mistake.
            if refusal.status != 410:
                self.protocol_error(str(refusal.status), refusal.detail, token=identifier)
        else:
            step = self.scripts.next(identifier)
            response = self.created(request) if step is None else self.scripted(step, push, request)
        if not response.fault or response.fault in ("goawayAfter", "endless"):
            push["status"] = response.status
        self.ledger.add(push)
        return response

    def created(self, request, status=201):
        return Response(status, {
            "location": f"{self.origin}/message/{secrets.token_urlsafe(12)}", "ttl": request.value("ttl"),
        })

    def scripted(self, step, push, request):
        name = push["script"] = step["response"]
        if name in REFUSALS:
            response = Response(REFUSALS[name])
        elif name == "redirect":
            location = step.get("location", f"{self.origin}/push/elsewhere")
            response = Response(step.get("status", 307), {"location": location})
        elif name == "garbage":
            response = Response(step.get("status", 201), {}, b"\x00\xffgarbage" * 100)
        elif name in ("ok", "accepted"):
            response = self.created(request, 201 if name == "ok" else 202)
        elif name == "goawayAfter":
            response = self.created(request)
            response.fault = name
        else:
            response = Response(status=step.get("status", 201), fault=name)
        if "retryAfter" in step:
            response.headers["retry-after"] = str(step["retryAfter"])
        response.delay = step.get("delayMs", 0) / 1_000
        return response

    # The checks.

    def subscription(self, request, path, identifier):
        if not path.startswith("/push/"):
            raise Refusal(404, f"path {path}")
        subscription = self.subscriptions.get(identifier)
        if subscription is None:
            raise Refusal(404, "no such subscription")
        if not subscription.is_active:
            raise Refusal(410, "the subscription has ended")
        if request.method != "POST":
            raise Refusal(405, f"method {request.method}")
        return subscription

    def check(self, request, subscription, push):
        for name in ("ttl", "urgency", "topic", "authorization", "content-encoding"):
            if len(request.values(name)) > 1:
                raise Refusal(400, f"{name} stands twice")
        if not re.fullmatch(r"[0-9]{1,10}", request.value("ttl") or ""):
            raise Refusal(400, f"TTL {request.value('ttl')!r}: a number of seconds is mandatory")
        if request.value("urgency") not in (None, "very-low", "low", "normal", "high"):
            raise Refusal(400, f"Urgency {request.value('urgency')!r}")
        topic = request.value("topic")
        if topic is not None and not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", topic):
            raise Refusal(400, f"Topic {topic!r}: at most 32 characters of base64url")
        push["vapid"] = self.check_vapid(request.value("authorization"), subscription)
        if request.body:
            self.decrypt(request, subscription, push)

    def check_vapid(self, header, subscription):
        """The claims."""
        if header is None:
            raise Refusal(401, "no authorization header")
        match = re.fullmatch(r"vapid\s+(.+)", header, re.IGNORECASE)
        parts = dict(re.findall(r"([a-z]+)=([^,\s]+)", match.group(1))) if match else {}
        if set(parts) != {"t", "k"}:
            raise Refusal(401, "authorization is not of the form: vapid t=…, k=…")
        token, key = parts["t"], parts["k"]
        if subscription.server_key not in (None, key):
            raise Refusal(403, "k is not the key of the subscription")
        try:
            # py-vapid does not take the space after the comma of RFC 8292, and checks no claims.
            if not Vapid02.verify(f"vapid t={token},k={key}"):
                raise Refusal(403, "the signature of t is not by k")
            if jwt.get_unverified_header(token)["alg"] != "ES256":
                raise Refusal(403, "alg is not ES256")
            claims = jwt.decode(token, options={"verify_signature": False})
        except (jwt.InvalidTokenError, ValueError, KeyError, AssertionError) as error:
            raise Refusal(403, f"{type(error).__name__}: {error}") from error
        if claims.get("aud") != self.origin:
            raise Refusal(403, f"aud {claims.get('aud')!r}: the origin of the endpoint is {self.origin}")
        expiry = claims.get("exp")
        if not isinstance(expiry, (int, float)) or not self.now() < expiry <= self.now() + VAPID_SECONDS:
            raise Refusal(403, "exp is over, or more than 24 h ahead")
        if not str(claims.get("sub", "")).startswith(("mailto:", "https://")):
            raise Refusal(403, f"sub {claims.get('sub')!r}: mailto: or https: is wanted")
        self.vapid_tokens.add(token)
        return claims

    def decrypt(self, request, subscription, push):
        body = request.body
        if request.value("content-encoding") != "aes128gcm":
            raise Refusal(400, f"Content-Encoding {request.value('content-encoding')!r}")
        if len(body) > 4_096:
            raise Refusal(413, f"{len(body)} bytes of at most 4096")
        if len(body) < OVERHEAD:
            raise Refusal(400, f"a body of {len(body)} bytes")
        size, length = struct.unpack("!LB", body[16:21])
        if length != 65 or body[21] != 4:
            raise Refusal(400, "the key id is no uncompressed point")
        if size < len(body) - 86:
            raise Refusal(400, f"more than one record of {size} bytes")
        used = {body[:16], body[21:86]}
        if used & self.seen_keys:
            raise Refusal(400, "the salt or key of another message")
        self.seen_keys |= used
        try:
            data = http_ece.decrypt(body, private_key=subscription.private_key, auth_secret=subscription.secret)
        except (http_ece.ECEException, cryptography.exceptions.InvalidTag, ValueError, binascii.Error) as error:
            raise Refusal(400, f"not decrypted: {type(error).__name__} {error}") from error
        push["padding"] = len(body) - OVERHEAD - len(data)
        try:
            push["text"] = data.decode()
        except UnicodeDecodeError as error:
            raise Refusal(400, "the text is not UTF-8") from error


if __name__ == "__main__":
    run(WebPushStandIn, ["h2", "http/1.1"])
