"""A receiver of Standard Webhooks, over TLS with HTTP/2 and HTTP/1.1. The reference library, standardwebhooks, verifies
what is received. What it refuses without a script is an error of its client, which `/state` lists. See `stand_in.py`;
scripts are by the id of a receiver.

More of the control endpoint: `POST /receivers {"id"?, "secrets": ["whsec_…"]}` makes a receiver, or gives one other
secrets, and returns its `id` and `url`. Settings: `clockOffset`, which the library does not see.
"""

import json
import secrets
import urllib.parse

from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from http2_server import FAULTS, Response, Server
from stand_in import StandIn, run

REFUSALS = {
    "badRequest": 400, "unauthorized": 401, "notFound": 404, "gone": 410, "tooMany": 429, "internal": 500,
    "badGateway": 502, "unavailable": 503,
}
HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature", "content-type")


class Refusal(Exception):
    """A response that is no success, with what is wrong in words."""

    def __init__(self, status, detail):
        super().__init__(detail)
        self.status, self.detail = status, detail


class WebhookStandIn(StandIn):
    description = __doc__
    has_plain = True
    responses = FAULTS | set(REFUSALS) | {"ok", "accepted", "redirect"}

    def __init__(self, options):
        super().__init__(options)
        self.server = Server(self.respond, self.protocol_error)
        self.reset()

    def reset(self):
        super().reset()
        self.server.reset()
        # The secrets of each receiver, and the body of each webhook-id.
        self.receivers, self.bodies = {}, {}

    async def start(self, context):
        port = await self.server.start(context)
        self.origin = f"{'https' if context else 'http'}://127.0.0.1:{port}"
        return {"port": port}

    def state(self):
        return super().state() | self.server.state() | {"receivers": len(self.receivers)}

    def add_routes(self, application):
        application.add_routes([web.post("/receivers", self.post_receiver)])

    async def post_receiver(self, request):
        body = await request.json()
        identifier = body.get("id") or secrets.token_urlsafe(12)
        # The library refuses what is no secret.
        self.receivers[identifier] = {secret: Webhook(secret) for secret in body["secrets"]}
        return web.json_response({"id": identifier, "url": f"{self.origin}/hooks/{identifier}"})

    def respond(self, request):
        path = urllib.parse.urlsplit(request.path).path
        identifier = path.removeprefix("/hooks/")
        push = {
            "token": identifier, "status": None, "script": None, "reason": None, "body": None, "verifiedBy": [],
            "headers": dict(request.headers), "connection": request.connection.number,
        }
        try:
            self.check(request, path, push)
        except Refusal as refusal:
            push["reason"] = refusal.detail
            response = Response(refusal.status, {"content-type": "text/plain"}, refusal.detail.encode())
            self.protocol_error(str(refusal.status), refusal.detail, token=identifier)
        else:
            step = self.scripts.next(identifier)
            response = Response(204) if step is None else self.scripted(step, push)
        if not response.fault or response.fault in ("goawayAfter", "endless"):
            push["status"] = response.status
        self.ledger.add(push)
        return response

    def scripted(self, step, push):
        name = push["script"] = step["response"]
        if name in REFUSALS:
            response = Response(REFUSALS[name])
        elif name == "redirect":
            response = Response(step.get("status", 307), {"location": step["location"]})
        elif name in ("ok", "accepted"):
            response = Response(200 if name == "ok" else 202)
        else:
            response = Response(status=step.get("status", 200), fault=name)
        if "retryAfter" in step:
            response.headers["retry-after"] = str(step["retryAfter"])
        response.delay = step.get("delayMs", 0) / 1_000
        return response

    # The checks.

    def check(self, request, path, push):
        identifier = push["token"]
        if not path.startswith("/hooks/") or identifier not in self.receivers:
            raise Refusal(404, f"path {path}")
        if request.method != "POST":
            raise Refusal(405, f"method {request.method}")
        for name in HEADERS:
            if len(request.values(name)) != 1:
                raise Refusal(400, f"{name} stands {len(request.values(name))} times")
        push["verifiedBy"] = self.verifying(request, identifier)
        push["body"] = self.read(request)
        # The same webhook-id is the same message, in every attempt.
        if self.bodies.setdefault((identifier, request.value("webhook-id")), bytes(request.body)) != request.body:
            raise Refusal(400, "another body with the same webhook-id")

    def verifying(self, request, identifier):
        """Those secrets of the receiver that verify the request."""
        found, problem = [], "the receiver has no secrets"
        for secret, webhook in self.receivers[identifier].items():
            try:
                webhook.verify(bytes(request.body), dict(request.headers))
                found.append(secret)
            except (WebhookVerificationError, ValueError) as error:
                problem = f"{type(error).__name__}: {error}"
        if not found:
            raise Refusal(401, problem)
        return found

    def read(self, request):
        """The body, of the form that the specification recommends."""
        if request.value("content-type").split(";")[0] != "application/json":
            raise Refusal(400, f"content-type {request.value('content-type')!r}")
        body = json.loads(request.body)
        if not isinstance(body, dict) or not {"type", "timestamp", "data"} <= set(body):
            raise Refusal(400, "the body has no type, timestamp or data")
        return body


if __name__ == "__main__":
    run(WebhookStandIn, ["h2", "http/1.1"])
