"""A stand-in of FCM's HTTP v1 and of its OAuth token endpoint, over TLS with HTTP/2 and HTTP/1.1. Messages are checked
as strictly as by FCM: what is refused without a script is an error of the client, which `/state` lists. See
`stand_in.py`; scripts are by `token`, `fid` or `topic`.

Settings: `clockOffset`, `expiresIn` (of access tokens, 3599), `revoke: true` (all access tokens), `oauth`: `ok`,
`refuse`, `unavailable`, `noToken`, `garbage`, `endless`, `silent`.
"""

import json
import secrets
import urllib.parse
import uuid

import jwt

import fcm_message
from http2_server import FAULTS, Response, Server
from stand_in import StandIn, run

SCOPES = {"https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform"}
GOOGLE_TOKEN_URI = "https://oauth2.googleapis.com/token"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
JSON_TYPE = {"content-type": "application/json; charset=UTF-8"}
# Status, google.rpc.Status, message, FcmError's errorCode.
ERRORS = {
    "unregistered": (404, "NOT_FOUND", "Requested entity was not found.", "UNREGISTERED"),
    "invalidToken": (
        400, "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token", "INVALID_ARGUMENT"),
    "senderIdMismatch": (403, "PERMISSION_DENIED", "SenderId mismatch", "SENDER_ID_MISMATCH"),
    "quotaExceeded": (429, "RESOURCE_EXHAUSTED", "Quota exceeded for the device.", "QUOTA_EXCEEDED"),
    "unavailable": (503, "UNAVAILABLE", "The service is currently unavailable.", "UNAVAILABLE"),
    "internal": (500, "INTERNAL", "Internal error encountered.", "INTERNAL"),
    "thirdPartyAuthError": (
        401, "UNAUTHENTICATED", "Auth error from APNS or Web Push Service", "THIRD_PARTY_AUTH_ERROR"),
    "apnsAuthError": (401, "UNAUTHENTICATED", "Auth error from APNS or Web Push Service", "APNS_AUTH_ERROR"),
    "unauthenticated": (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", None),
    "permissionDenied": (
        403, "PERMISSION_DENIED", "Permission 'cloudmessaging.messages.create' denied on the project", None),
}


def error(status, name, message, code=None, fields=()):
    """A google.rpc.Status, with the details that FCM adds."""
    details = []
    if code:
        details.append({"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code})
    if fields:
        details.append({
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": field, "description": text} for field, text in fields]})
    body = {"error": {"code": status, "message": message, "status": name}}
    if details:
        body["error"]["details"] = details
    return Response(status, dict(JSON_TYPE), json.dumps(body, ensure_ascii=False).encode())


class FCMStandIn(StandIn):
    description = __doc__
    has_plain = True
    responses = FAULTS | set(ERRORS) | {"ok", "garbage", "invalidArgument", "badGateway", "gatewayTimeout"}

    def __init__(self, options):
        super().__init__(options)
        with open(options.public_key, encoding="ascii") as file:
            self.public_key = file.read()
        self.server = Server(self.respond, self.protocol_error)
        self.reset()

    def reset(self):
        super().reset()
        self.server.reset()
        self.access_tokens = {}
        self.expires_in = 3_599
        self.oauth = "ok"
        self.fetches, self.refused_fetches, self.unauthorized = 0, 0, 0
        self.audiences = []

    @classmethod
    def add_arguments(cls, parser):
        parser.add_argument("--public-key", required=True, help="the service account's public key in PEM")
        parser.add_argument("--key-id", required=True, help="private_key_id of the service account")
        parser.add_argument("--email", required=True, help="client_email of the service account")
        parser.add_argument("--project", required=True)

    async def start(self, context):
        port = await self.server.start(context)
        self.token_uri = f"{'https' if context else 'http'}://127.0.0.1:{port}/token"
        return {"port": port, "tokenURI": self.token_uri}

    def state(self):
        return super().state() | self.server.state() | {
            "oauthFetches": self.fetches, "oauthRefused": self.refused_fetches, "audiences": self.audiences,
            "unauthorized": self.unauthorized,
        }

    def change(self, settings):
        settings = dict(settings)
        if settings.pop("revoke", False):
            self.access_tokens.clear()
        self.expires_in = settings.pop("expiresIn", self.expires_in)
        oauth = settings.pop("oauth", self.oauth)
        if oauth not in ("ok", "refuse", "unavailable", "noToken", "garbage", "endless", "silent"):
            raise ValueError(f"unknown oauth {oauth!r}")
        self.oauth = oauth
        super().change(settings)

    def respond(self, request):
        path = urllib.parse.unquote(request.path.split("?")[0])
        if path == "/token":
            return self.respond_to_fetch(request)
        if not path.startswith("/v1/projects/") or not path.endswith("/messages:send"):
            self.protocol_error("path", f"{request.method} {path}")
            return Response(404, {"content-type": "text/html"}, b"<html><title>Error 404 (Not Found)!!1</title></html>")
        if request.method != "POST":
            self.protocol_error("method", f"{request.method} {path}")
            return Response(405, {"content-type": "text/html"}, b"<html></html>")
        return self.respond_to_send(request, path)

    # The OAuth token endpoint (RFC 7523).

    def respond_to_fetch(self, request):
        self.fetches += 1
        match self.oauth:
            case "silent" | "endless":
                return Response(fault=self.oauth)
            case "unavailable":
                return Response(503, {}, b"")
            case "garbage":
                return Response(200, dict(JSON_TYPE), b"\x00\xff{garbage")
            case "noToken":
                return Response(200, dict(JSON_TYPE), b'{"token_type":"Bearer","expires_in":3599}')
            case "refuse":
                self.refused_fetches += 1
                return self.oauth_error("invalid_grant", "Invalid JWT Signature.")
        problem = self.assertion_problem(request)
        if problem:
            self.refused_fetches += 1
            self.protocol_error("OAuth", problem)
            return self.oauth_error("invalid_grant", problem)
        token = "ya29." + secrets.token_urlsafe(32)
        self.access_tokens[token] = self.now() + self.expires_in
        return Response(200, dict(JSON_TYPE), json.dumps(
            {"access_token": token, "expires_in": self.expires_in, "token_type": "Bearer"}).encode())

    def oauth_error(self, name, description):
        body = json.dumps({"error": name, "error_description": description}).encode()
        return Response(400, dict(JSON_TYPE), body)

    def assertion_problem(self, request):
        """What is wrong with a request for an access token, or None."""
        if request.method != "POST":
            return f"method {request.method}"
        if (request.value("content-type") or "").split(";")[0] != "application/x-www-form-urlencoded":
            return "the request is no form"
        try:
            form = dict(urllib.parse.parse_qsl(request.body.decode("ascii"), strict_parsing=True))
            if form.get("grant_type") != GRANT:
                return f"grant_type {form.get('grant_type')!r}"
            header = jwt.get_unverified_header(form["assertion"])
            claims = jwt.decode(
                form["assertion"], self.public_key, algorithms=["RS256"],
                audience=[self.token_uri, GOOGLE_TOKEN_URI], issuer=self.options.email,
                options={"require": ["iss", "aud", "iat", "exp", "scope"], "verify_iat": False, "verify_exp": False})
        except (jwt.InvalidTokenError, ValueError, KeyError) as problem:
            return f"{type(problem).__name__}: {problem}"
        if header.get("kid") != self.options.key_id:
            return f"kid {header.get('kid')!r}"
        if claims["aud"] not in self.audiences:
            self.audiences.append(claims["aud"])
        if not SCOPES & set(claims["scope"].split(" ")):
            return f"scope {claims['scope']!r}"
        now = self.now()
        if not claims["iat"] - 60 <= now < claims["exp"] <= claims["iat"] + 3_600:
            return f"iat {claims['iat'] - now:+.0f} s, exp {claims['exp'] - now:+.0f} s"
        return None

    # Messages.

    def respond_to_send(self, request, path):
        push = {
            "token": None, "target": None, "status": None, "reason": None, "script": None, "message": None,
            "validateOnly": False, "body": request.body.decode(errors="replace"), "name": None,
            "connection": request.connection.number,
        }
        response = self.unauthorised(request, path) or self.refused(request, push)
        if response is None:
            step = self.scripts.next(push["token"])
            response = self.delivered(push) if step is None else self.scripted(step, push)
            if response.fault and response.fault not in ("goawayAfter", "endless"):
                self.ledger.add(push)
                return response
        push["status"] = response.status
        if response.status != 200:
            push["reason"] = response.body.decode(errors="replace")
        self.ledger.add(push)
        return response

    def unauthorised(self, request, path):
        """The response to a request without a valid access token, or for another project."""
        scheme, _, token = (request.value("authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or self.access_tokens.get(token, 0) <= self.now():
            self.unauthorized += 1
            return error(*ERRORS["unauthenticated"])
        if path != f"/v1/projects/{self.options.project}/messages:send":
            self.protocol_error("project", path)
            return error(*ERRORS["permissionDenied"])
        return None

    def refused(self, request, push):
        """The response to a message that is not valid. Fills in what is known of the push."""
        if (request.value("content-type") or "").split(";")[0] != "application/json":
            self.protocol_error("content-type", str(request.value("content-type")))
        try:
            body = json.loads(request.body.decode())
        except ValueError as problem:
            return self.invalid([("", f"Invalid JSON payload received. {problem}")], None)
        found, body = fcm_message.violations(body)
        if found:
            return self.invalid(found, None)
        message = push["message"] = body.get("message")
        if message is None:
            return self.invalid([("message", "Message is missing")], "INVALID_ARGUMENT")
        push["validateOnly"] = body.get("validate_only", False)
        for name in ("token", "fid", "topic", "condition"):
            if message.get(name):
                push["token"], push["target"] = message[name], name
        found = fcm_message.rule_violations(message)
        return self.invalid(found, "INVALID_ARGUMENT") if found else None

    def invalid(self, found, code):
        for field, description in found:
            self.protocol_error("INVALID_ARGUMENT", description, field=field)
        return error(400, "INVALID_ARGUMENT", "\n".join(text for _, text in found), code, found)

    def delivered(self, push):
        identifier = "fake_message_id" if push["validateOnly"] else f"0:{uuid.uuid4().hex}"
        push["name"] = f"projects/{self.options.project}/messages/{identifier}"
        return Response(200, dict(JSON_TYPE), json.dumps({"name": push["name"]}).encode())

    def scripted(self, step, push):
        name = push["script"] = step["response"]
        if name in ERRORS:
            response = error(*ERRORS[name])
        elif name == "invalidArgument":
            response = error(
                400, "INVALID_ARGUMENT", "Invalid value at 'message.android.ttl'", "INVALID_ARGUMENT",
                [("message.android.ttl", "Invalid value at 'message.android.ttl'")])
        elif name in ("badGateway", "gatewayTimeout"):
            status = 502 if name == "badGateway" else 504
            response = Response(status, {"content-type": "text/html"}, b"<html><title>Error</title></html>")
        elif name == "garbage":
            response = Response(step.get("status", 200), dict(JSON_TYPE), b"\x00\xff{garbage")
        elif name == "ok":
            response = self.delivered(push)
        elif name == "goawayAfter":
            response = self.delivered(push)
            response.fault = name
        else:
            response = Response(fault=name)
        if "retryAfter" in step:
            response.headers["retry-after"] = str(step["retryAfter"])
        response.delay = step.get("delayMs", 0) / 1_000
        return response


if __name__ == "__main__":
    run(FCMStandIn, ["h2", "http/1.1"])
