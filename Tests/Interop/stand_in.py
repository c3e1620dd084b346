"""What the stand-ins of push services share: their life as a program, certificates, scripts and the control endpoint.

A stand-in listens on free ports of 127.0.0.1, prints one line of JSON when it is ready and ends with SIGTERM or, with
`--exit-with-stdin`, with its standard input. Its control endpoint is plain HTTP:

    GET  /state                                     counters, and what clients did against the protocol
    GET  /pushes?after=&count=&timeout=&token=&status=   requests that were received, once there are `count` of them
    POST /scripts  {"tokens": {…}, "prefixes": {…}, "clear"?: true}
    POST /settings {…}                              as the stand-in says
    POST /reset                                     ends connections, and makes all as after the start

A script is the name of a response, `{"response": name, …parameters}`, or a list of these. A name alone holds for ever.
Those of a list hold once, or `times` times, each; then requests are processed as usual.
"""

import argparse
import asyncio
import collections
import json
import os
import signal
import ssl
import sys
import tempfile
import time

import trustme
from aiohttp import web

ERRORS_KEPT = 1_000
WAIT_MAX = 120


class Scripts:
    """What is responded to requests of a token, by the token or the longest prefix of it."""

    def __init__(self, names):
        self.names = names
        self.clear()

    def clear(self):
        self.tokens, self.prefixes, self.used = {}, {}, collections.Counter()

    def change(self, body):
        """Sets scripts. Throws ValueError for one that has no meaning, and changes nothing then."""
        unknown = set(body) - {"tokens", "prefixes", "clear"}
        if unknown:
            raise ValueError(f"unknown members {sorted(unknown)}: tokens, prefixes and clear are known")
        tokens = {token: self.steps(script) for token, script in body.get("tokens", {}).items()}
        prefixes = {prefix: self.steps(script) for prefix, script in body.get("prefixes", {}).items()}
        if body.get("clear"):
            self.clear()
        self.tokens |= tokens
        self.prefixes |= prefixes
        for token in list(self.used):
            if token in tokens or token.startswith(tuple(prefixes)):
                del self.used[token]

    def steps(self, script):
        """A list of (step, how often), with None for ever."""
        once = 1 if isinstance(script, list) else None
        steps = []
        for item in script if isinstance(script, list) else [script]:
            step = {"response": item} if isinstance(item, str) else dict(item)
            if step.get("response") not in self.names:
                raise ValueError(f"unknown response {step.get('response')!r}: one of {', '.join(sorted(self.names))}")
            steps.append((step, step.pop("times", once)))
        return steps

    def next(self, token):
        """The step for a request, None where there is none."""
        steps = self.tokens.get(token)
        if steps is None:
            prefix = max((one for one in self.prefixes if token.startswith(one)), key=len, default=None)
            if prefix is None:
                return None
            steps = self.prefixes[prefix]
        number = self.used[token]
        for step, times in steps:
            if times is None or number < times:
                self.used[token] += 1
                return step
            number -= times
        return None


class Ledger:
    """What was received, and what was against the protocol."""

    def __init__(self):
        self.pushes = []
        self.protocol_errors = []
        self.protocol_error_count = 0
        self.warnings = collections.Counter()
        self.added = asyncio.Event()

    def add(self, push):
        push["number"] = len(self.pushes)
        push["time"] = time.time()
        self.pushes.append(push)
        self.added.set()
        self.added = asyncio.Event()

    def protocol_error(self, reason, detail, **members):
        self.protocol_error_count += 1
        if len(self.protocol_errors) < ERRORS_KEPT:
            self.protocol_errors.append({"reason": reason, "detail": detail, **members})

    async def matching(self, wanted, after, count, timeout):
        """Pushes from number `after` on that have the wanted members, once there are `count`, or at the deadline."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        found, position = [], after
        while True:
            event = self.added
            for push in self.pushes[position:]:
                if all(push[name] == value for name, value in wanted.items()):
                    found.append(push)
            position = max(position, len(self.pushes))
            left = deadline - loop.time()
            if len(found) >= count or left <= 0:
                return {"pushes": found, "next": position, "isComplete": len(found) >= count}
            try:
                await asyncio.wait_for(event.wait(), left)
            except asyncio.TimeoutError:
                pass


class StandIn:
    """A push service. Subclasses say what they respond, with which scripts and settings."""

    description = ""
    responses = frozenset()
    # Whether it can be plain HTTP/1.1, for senders that have no setting for an authority.
    has_plain = False

    def __init__(self, options):
        self.options = options
        self.ledger = Ledger()
        self.scripts = Scripts(self.responses)
        self.clock_offset = 0

    @classmethod
    def add_arguments(cls, parser):
        """Arguments beside the common ones."""

    def now(self):
        """The time of the service, which tests move on."""
        return time.time() + self.clock_offset

    def protocol_error(self, reason, detail, **members):
        self.ledger.protocol_error(reason, detail, **members)

    def reset(self):
        """Drops what was received, and all scripts and settings."""
        self.ledger = Ledger()
        self.scripts.clear()
        self.clock_offset = 0

    def state(self):
        ledger = self.ledger
        return {
            "pushes": len(ledger.pushes), "protocolErrorCount": ledger.protocol_error_count,
            "protocolErrors": ledger.protocol_errors, "warnings": ledger.warnings,
        }

    def change(self, settings):
        """Takes settings. Throws ValueError for one that has no meaning."""
        for name, value in settings.items():
            if name == "clockOffset":
                self.clock_offset = value
            else:
                raise ValueError(f"unknown setting {name!r}")

    def add_routes(self, application):
        """Routes of the control endpoint beside the common ones."""

    async def start(self, context):
        """Listens, with TLS if there is a context, and returns the members of the line that says that it is ready."""
        raise NotImplementedError

    # The control endpoint.

    async def get_state(self, _):
        return web.json_response(self.state())

    async def get_pushes(self, request):
        query = request.query
        wanted = {"token": query["token"]} if "token" in query else {}
        if "status" in query:
            wanted["status"] = int(query["status"])
        timeout = min(float(query.get("timeout", 0)), WAIT_MAX)
        return web.json_response(await self.ledger.matching(
            wanted, int(query.get("after", 0)), int(query.get("count", 0)), timeout))

    async def post_scripts(self, request):
        self.scripts.change(await request.json())
        return web.json_response({})

    async def post_settings(self, request):
        self.change(await request.json())
        return web.json_response({})

    async def post_reset(self, _):
        self.reset()
        return web.json_response({})

    @web.middleware
    async def refuse(self, request, handler):
        try:
            return await handler(request)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=400)

    async def start_control(self):
        application = web.Application(middlewares=[self.refuse], client_max_size=64 << 20)
        application.add_routes([
            web.get("/state", self.get_state), web.get("/pushes", self.get_pushes),
            web.post("/scripts", self.post_scripts), web.post("/settings", self.post_settings),
            web.post("/reset", self.post_reset),
        ])
        self.add_routes(application)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner


def certificate(directory, names, protocols):
    """A TLS context with a new certificate for the names, and the path of the authority's certificate."""
    authority = trustme.CA()
    path = os.path.join(directory, "ca.pem")
    authority.cert_pem.write_to_path(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    authority.issue_cert(*names).configure_cert(context)
    context.set_alpn_protocols(protocols)
    return context, path


async def half_tls_record():
    """The port of a server that sends the first half of a TLS record, and nothing more."""
    def connected(_, writer):
        writer.write(b"\x16\x03\x03\x00\x7a\x02\x00\x00")

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


async def serve(stand_in, directory, protocols):
    """Runs the stand-in until it is to end."""
    options = stand_in.options
    context, path = certificate(directory, options.certificate_name or ["localhost", "127.0.0.1"], protocols)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    if options.exit_with_stdin:
        def stdin_is_readable():
            if not os.read(sys.stdin.fileno(), 4_096):
                loop.remove_reader(sys.stdin.fileno())
                ended.set()

        loop.add_reader(sys.stdin.fileno(), stdin_is_readable)
    control = await stand_in.start_control()
    half, half_port = await half_tls_record()
    scheme = "http" if options.plain else "https"
    ready = await stand_in.start(None if options.plain else context)
    ready |= {
        "url": f"{scheme}://127.0.0.1:{ready['port']}", "ca": path, "pid": os.getpid(), "halfTLSRecordPort": half_port,
        "control": f"http://127.0.0.1:{control.addresses[0][1]}",
    }
    print(json.dumps(ready), flush=True)
    await ended.wait()
    half.close()


def run(kind, protocols):
    """The main function of a stand-in."""
    parser = argparse.ArgumentParser(description=kind.description)
    parser.add_argument("--exit-with-stdin", action="store_true", help="end when standard input is closed")
    parser.add_argument("--certificate-name", action="append", help="a name in the certificate (127.0.0.1, localhost)")
    parser.add_argument(
        "--plain", action="store_true", help="HTTP/1.1 without TLS" if kind.has_plain else argparse.SUPPRESS)
    kind.add_arguments(parser)
    options = parser.parse_args()
    if options.plain and not kind.has_plain:
        parser.error("--plain is not possible: this service is HTTP/2 over TLS")

    async def main():
        await serve(kind(options), directory, protocols)

    with tempfile.TemporaryDirectory(prefix="hato-push-") as directory:
        asyncio.run(main())
    # Connections and requests that are still open are of no use to any test.
    sys.stdout.flush()
    os._exit(0)
