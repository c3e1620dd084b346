"""A stand-in of Apple's push service: HTTP/2 over TLS on h2, one stream until a valid provider token, every header
and limit checked. What it refuses without a script is an error of its client, which `/state` lists. See `stand_in.py`.

It is stricter than Apple where a sender of ours has no reason to be lax: upper-case ids and unknown members of `aps`
are refused, and absent headers with a default are counted as `warnings`.

Settings: `clockOffset` (seconds: moves the service's time on), `firstStreams`, `streams`, `keys` ({id: PEM}).
"""

import json
import re
import urllib.parse

import jwt

import aps
from http2_server import FAULTS, Response, Server
from stand_in import StandIn, run

PUSH_TYPES = {
    "alert": "", "background": "", "location": ".location-query", "voip": ".voip", "complication": ".complication",
    "fileprovider": ".pushkit.fileprovider", "mdm": "", "liveactivity": ".push-type.liveactivity",
    "pushtotalk": ".voip-ptt", "widgets": ".push-type.widgets", "controls": ".push-type.controls",
}
HEADERS = {
    "authorization", "apns-topic", "apns-push-type", "apns-priority", "apns-expiration", "apns-id", "apns-collapse-id",
    "apns-channel-id", "apns-request-id",
}
TOKEN_SECONDS, TOKEN_UPDATE_SECONDS = 3_600, 1_200
REFUSALS = {
    "bad": (400, "BadDeviceToken"), "notForTopic": (400, "DeviceTokenNotForTopic"), "badTopic": (400, "BadTopic"),
    "topicDisallowed": (400, "TopicDisallowed"), "badCertificateEnvironment": (400, "BadCertificateEnvironment"),
    "idleTimeout": (400, "IdleTimeout"), "badCollapseId": (400, "BadCollapseId"), "badPriority": (400, "BadPriority"),
    "expiredProviderToken": (403, "ExpiredProviderToken"), "invalidProviderToken": (403, "InvalidProviderToken"),
    "forbidden": (403, "Forbidden"), "unrelatedKey": (403, "UnrelatedKeyIdInToken"),
    "badEnvironmentKey": (403, "BadEnvironmentKeyIdInToken"), "badPath": (404, "BadPath"),
    "gone": (410, "Unregistered"), "expiredToken": (410, "ExpiredToken"), "tooLarge": (413, "PayloadTooLarge"),
    "tooMany": (429, "TooManyRequests"), "tooManyTokenUpdates": (429, "TooManyProviderTokenUpdates"),
    "internal": (500, "InternalServerError"), "unavailable": (503, "ServiceUnavailable"),
    "shutdown": (503, "Shutdown"),
}


class Refusal(Exception):
    """A response that is not 200, with what is wrong in words."""

    def __init__(self, status, reason, detail):
        super().__init__(detail)
        self.status, self.reason, self.detail = status, reason, detail


class APNsStandIn(StandIn):
    description = __doc__
    responses = FAULTS | set(REFUSALS) | {"ok", "garbage"}

    def __init__(self, options):
        super().__init__(options)
        self.server = Server(self.respond, self.protocol_error, has_http1=False)
        self.server.raises_early = options.raise_early
        self.reset()

    def reset(self):
        super().reset()
        self.server.reset()
        self.server.first_streams, self.streams = 1, 1_000
        self.verified, self.provider_tokens = {}, set()
        self.keys = {}
        for text in self.options.key:
            key_id, path = text.split("=", 1)
            with open(path, encoding="ascii") as file:
                self.keys[key_id] = file.read()

    @classmethod
    def add_arguments(cls, parser):
        parser.add_argument("--key", action="append", required=True, help="KEYID=path of the public key in PEM")
        parser.add_argument("--team", required=True)
        parser.add_argument("--topic", action="append", required=True, help="a bundle id")
        parser.add_argument(
            "--raise-early", action="store_true", help="allow more streams before the first response, not after it")
        parser.add_argument("--environment", choices=["production", "sandbox"], default="production")

    async def start(self, context):
        return {"port": await self.server.start(context)}

    def state(self):
        return super().state() | self.server.state() | {"providerTokens": len(self.provider_tokens)}

    def change(self, settings):
        settings = dict(settings)
        self.server.first_streams = settings.pop("firstStreams", self.server.first_streams)
        self.streams = settings.pop("streams", self.streams)
        if "keys" in settings:
            self.keys = settings.pop("keys")
            self.verified.clear()
        super().change(settings)

    def respond(self, request):
        token = request.path.rsplit("/", 1)[-1]
        push = {
            "token": token, "id": request.value("apns-id"), "status": None, "reason": None, "script": None,
            "headers": {name: value for name, value in request.headers if name != "authorization"},
            "body": request.body.decode(errors="replace"), "payload": None,
            "connection": request.connection.number, "stream": request.stream,
        }
        step = None
        try:
            self.check_request(request, token, push)
            if self.is_known(request, token):
                step = self.scripts.next(token)
                response = Response() if step is None else self.scripted(step, push)
            else:
                response = self.refusal(*REFUSALS["bad"])
            request.connection.notes["isRefused"] = response.status == 403
        except Refusal as refusal:
            self.protocol_error(refusal.reason, refusal.detail, token=token, connection=push["connection"])
            response = self.refusal(refusal.status, refusal.reason)
        self.finish(push, response, step)
        return response

    def finish(self, push, response, step):
        """Adds what every response has, and keeps the push."""
        if step and step["response"] in FAULTS - {"goawayAfter", "endless"}:
            push["status"] = None
        else:
            push["status"] = response.status
            if response.status != 200 and response.body.startswith(b"{"):
                push["reason"] = json.loads(response.body).get("reason")
        if push["id"]:
            response.headers["apns-id"] = push["id"]
        if self.options.environment == "sandbox" and response.status == 200:
            response.headers["apns-unique-id"] = f"unique-{push['id']}"
        self.ledger.add(push)

    def refusal(self, status, reason, timestamp=None, retry_after=None):
        body = {"reason": reason}
        if timestamp is not None:
            body["timestamp"] = timestamp
        headers = {"content-type": "application/json"}
        if retry_after is not None:
            headers["retry-after"] = str(retry_after)
        return Response(status, headers, json.dumps(body).encode())

    def scripted(self, step, push):
        name = push["script"] = step["response"]
        if name in REFUSALS:
            status, reason = REFUSALS[name]
            timestamp = step.get("timestamp", int(self.now() * 1_000) if status == 410 else None)
            response = self.refusal(status, reason, timestamp, step.get("retryAfter"))
        elif name == "garbage":
            response = Response(step.get("status", 200), {"content-type": "application/json"}, b"\x00\xff{garbage")
        elif name == "ok":
            response = Response()
        else:
            response = Response(fault=name)
        response.delay = step.get("delayMs", 0) / 1_000
        return response

    # The checks, in the order in which the first one that fails is the response.

    def check_request(self, request, token, push):
        if request.method != "POST":
            raise Refusal(405, "MethodNotAllowed", f"method {request.method}")
        if not request.path.startswith("/3/device/"):
            raise Refusal(404, "BadPath", f"path {urllib.parse.quote(request.path)}")
        if request.path == "/3/device/":
            raise Refusal(400, "MissingDeviceToken", "no device token in the path")
        for name in sorted(HEADERS):
            if len(request.values(name)) > 1:
                raise Refusal(400, "DuplicateHeaders", f"{name} stands twice")
        for name, _ in request.headers:
            if name.startswith("apns-") and name not in HEADERS:
                self.ledger.warnings[f"{name} is unknown"] += 1
        self.check_provider_token(request)
        push_type = self.check_headers(request)
        push["payload"] = self.check_payload(request.body, push_type)

    def is_known(self, request, token):
        """Whether a device may have the token. Of zeros alone none has it: such a push tries the credentials."""
        if request.path != f"/3/device/{token}" or not re.fullmatch(r"([0-9a-f]{2}){16,100}", token):
            self.ledger.warnings["a device token is not hexadecimal"] += 1
            return False
        return token.strip("0") != ""

    def check_provider_token(self, request):
        header = request.value("authorization")
        if header is None:
            raise Refusal(403, "MissingProviderToken", "no authorization header")
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer":
            raise Refusal(403, "InvalidProviderToken", f"authorization {scheme}: bearer is wanted")
        key_id, issued_at = self.verified.get(token) or self.verify(token)
        if self.now() - issued_at > TOKEN_SECONDS:
            raise Refusal(403, "ExpiredProviderToken", "iat is more than an hour ago")
        if issued_at > self.now() + 60:
            raise Refusal(403, "InvalidProviderToken", "iat is in the future")
        notes = request.connection.notes
        if notes.setdefault("key", key_id) != key_id:
            raise Refusal(403, "UnrelatedKeyIdInToken", "another key than in the first push of the connection")
        if notes.get("token") != token:
            since = notes.get("since")
            # A token that has expired since, or that a script refused, is replaced at any time.
            is_due = since is None or self.now() - since >= TOKEN_UPDATE_SECONDS
            if not is_due and not notes.get("isRefused"):
                raise Refusal(429, "TooManyProviderTokenUpdates", "a new provider token within 20 minutes")
            notes["token"], notes["since"] = token, self.now()
        self.provider_tokens.add(token)
        self.server.raise_streams(request.connection, self.streams)

    def verify(self, token):
        """The key id and time of a token with a valid signature."""
        try:
            header = jwt.get_unverified_header(token)
            key = self.keys[header["kid"]]
            if set(header) - {"alg", "kid", "typ"}:
                raise Refusal(403, "InvalidProviderToken", f"members of the JWT's header: {sorted(header)}")
            claims = jwt.decode(
                token, key, algorithms=["ES256"], issuer=self.options.team,
                options={"require": ["iss", "iat"], "verify_iat": False})
            found = header["kid"], int(claims["iat"])
        except KeyError as error:
            raise Refusal(403, "InvalidProviderToken", f"unknown key id {error}") from error
        except (jwt.InvalidTokenError, ValueError, TypeError) as error:
            raise Refusal(403, "InvalidProviderToken", f"{type(error).__name__}: {error}") from error
        self.verified[token] = found
        return found

    def check_headers(self, request):
        """The push type."""
        topic = request.value("apns-topic")
        if topic is None:
            raise Refusal(400, "MissingTopic", "no apns-topic")
        push_type = request.value("apns-push-type")
        if push_type is None:
            self.ledger.warnings["apns-push-type is absent"] += 1
            push_type = "alert"
        if push_type not in PUSH_TYPES:
            raise Refusal(400, "InvalidPushType", f"apns-push-type {push_type!r}")
        if topic not in {name + PUSH_TYPES[push_type] for name in self.options.topic}:
            raise Refusal(400, "BadTopic", f"apns-topic {topic!r} with push type {push_type}")
        if request.connection.notes.setdefault("topic", topic) != topic:
            raise Refusal(400, "TopicDisallowed", "another topic than in the first push of the connection")
        priority = request.value("apns-priority")
        if priority is None:
            self.ledger.warnings["apns-priority is absent"] += 1
            if push_type == "background":
                raise Refusal(400, "BadPriority", "a background push has priority 5: absent means 10")
        elif priority not in ("10", "5", "1"):
            raise Refusal(400, "BadPriority", f"apns-priority {priority!r}")
        elif push_type == "background" and priority != "5":
            raise Refusal(400, "BadPriority", f"a background push has priority 5, not {priority}")
        expiration = request.value("apns-expiration")
        if expiration is None:
            self.ledger.warnings["apns-expiration is absent"] += 1
        elif not re.fullmatch(r"0|[1-9][0-9]{0,9}", expiration):
            raise Refusal(400, "BadExpirationDate", f"apns-expiration {expiration!r} is not in seconds")
        elif 0 < int(expiration) < self.now() - 60:
            self.ledger.warnings["apns-expiration is over"] += 1
        identifier = request.value("apns-id")
        if identifier is None:
            self.ledger.warnings["apns-id is absent"] += 1
        elif not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", identifier):
            raise Refusal(400, "BadMessageId", f"apns-id {identifier!r} is no UUID in lower case")
        collapse = request.value("apns-collapse-id")
        if collapse is not None and not 1 <= len(collapse.encode()) <= 64:
            raise Refusal(400, "BadCollapseId", f"apns-collapse-id has {len(collapse.encode())} bytes")
        return push_type

    def check_payload(self, body, push_type):
        limit = 5_120 if push_type == "voip" else 4_096
        if not body:
            raise Refusal(400, "PayloadEmpty", "no payload")
        if len(body) > limit:
            raise Refusal(413, "PayloadTooLarge", f"{len(body)} bytes of at most {limit}")
        try:
            payload = json.loads(body.decode())
        except ValueError as error:
            raise Refusal(400, "PayloadEmpty", f"the payload is no JSON: {error}") from error
        if not isinstance(payload, dict) or "aps" not in payload:
            raise Refusal(400, "PayloadEmpty", "the payload has no aps")
        problems = aps.aps_problems(payload["aps"], push_type)
        if problems:
            raise Refusal(400, "PayloadEmpty", "; ".join(problems))
        problems = aps.type_problems(payload["aps"], push_type)
        if problems:
            raise Refusal(400, "InvalidPushType", "; ".join(problems))
        if push_type == "background" and "badge" in payload["aps"]:
            self.ledger.warnings["aps.badge in a background push"] += 1
        return payload


if __name__ == "__main__":
    run(APNsStandIn, ["h2"])
