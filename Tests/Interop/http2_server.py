"""A server of HTTP/2 over TLS on h2, whose responses may be faults, and of HTTP/1.1 where a client has no HTTP/2."""

import asyncio
import collections
import contextlib
import dataclasses
import itertools
import weakref

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
import hyperframe.frame
from aiohttp import web
from h2.errors import ErrorCodes

BODY_MAX = 1 << 20


@dataclasses.dataclass
class Request:
    """A request with its whole body. `connection` keeps what a service remembers of its connection."""
    method: str
    path: str
    headers: list
    body: bytes
    connection: "ConnectionMemory"
    stream: int = 0

    def values(self, name):
        return [value for header, value in self.headers if header == name]

    def value(self, name):
        """The first value of a header, or None."""
        return next(iter(self.values(name)), None)


@dataclasses.dataclass
class Response:
    """A response, or a fault in its place: `silent` never responds, `mute` makes the connection silent for ever,
    `close` ends it at once, `reset` and `refused` end the stream, `goawayBefore` refuses it with GOAWAY,
    `goawayAfter` sends GOAWAY after the response, `endless` sends a body without an end."""
    status: int = 200
    headers: dict = dataclasses.field(default_factory=dict)
    body: bytes = b""
    fault: str = ""
    delay: float = 0


FAULTS = frozenset(["silent", "mute", "close", "reset", "refused", "goawayBefore", "goawayAfter", "endless"])


@dataclasses.dataclass
class ConnectionMemory:
    number: int
    notes: dict = dataclasses.field(default_factory=dict)


class Server:
    """Gives each request to `respond`, and what is against the protocol to `protocol_error(reason, detail)`.

    `first_streams` is the number of concurrent streams of a new connection, until `raise_streams`.
    """

    def __init__(self, respond, protocol_error, first_streams=100, has_http1=True):
        self.respond = respond
        self.protocol_error = protocol_error
        self.first_streams = first_streams
        self.has_http1 = has_http1
        # Whether more streams are allowed before the response that allows them, instead of after it.
        self.raises_early = False
        self.counters = collections.Counter()
        self.connections = {}
        self.numbers = itertools.count(1)
        self.http1_memories = weakref.WeakKeyDictionary()
        self.streams_max = 0

    async def start(self, context):
        self.http1 = web.Server(self.respond_to_http1, access_log=None) if self.has_http1 else None
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Connection(self), "127.0.0.1", 0, ssl=context, backlog=512)
        return self.server.sockets[0].getsockname()[1]

    def state(self):
        return {
            "connections": self.counters["connections"], "openConnections": len(self.connections),
            "streamsMax": self.streams_max, "refusedStreams": self.counters["refusedStreams"],
            "resets": self.counters["resets"], "pings": self.counters["pings"],
            "http1Requests": self.counters["http1Requests"],
        }

    def reset(self):
        """Ends connections of HTTP/2, and counts from zero."""
        self.counters.clear()
        self.streams_max = 0
        for connection in self.connections.values():
            connection.transport.abort()

    def new_memory(self):
        self.counters["connections"] += 1
        return ConnectionMemory(next(self.numbers))

    def raise_streams(self, memory, count):
        """Allows more concurrent streams on a connection, after the response to the present request."""
        connection = self.connections.get(memory.number)
        if connection:
            connection.next_limit = count

    async def respond_to_http1(self, request):
        self.counters["http1Requests"] += 1
        transport = request.transport
        if transport not in self.http1_memories:
            self.http1_memories[transport] = self.new_memory()
        memory = self.http1_memories[transport]
        headers = [(name.lower(), value) for name, value in request.headers.items()]
        response = self.respond(Request(request.method, request.path_qs, headers, await request.read(), memory))
        if response.delay:
            await asyncio.sleep(response.delay)
        if response.fault in ("silent", "mute"):
            await asyncio.Event().wait()
        if response.fault == "endless":
            stream = web.StreamResponse(status=response.status, headers=response.headers)
            await stream.prepare(request)
            with contextlib.suppress(ConnectionError):
                while True:
                    await stream.write(b"x" * 16_384)
                    # A write need not suspend: the loop is to see that the connection has ended.
                    await asyncio.sleep(0)
            return stream
        if response.fault and response.fault != "goawayAfter" and transport:
            transport.abort()
        return web.Response(status=response.status, headers=response.headers, body=response.body)


class Connection(asyncio.Protocol):
    """A connection of HTTP/2."""

    def __init__(self, server):
        self.server = server
        self.requests = {}
        self.unsent = {}
        self.paused = False
        self.is_mute = False
        self.is_acknowledged = False
        self.last_stream = None
        self.memory = None

    def connection_made(self, transport):
        tls = transport.get_extra_info("ssl_object")
        chosen = tls and tls.selected_alpn_protocol()
        if chosen != "h2":
            if self.server.http1 is None:
                self.server.protocol_error("ALPN", f"the client chose {chosen}: h2 is what this service speaks")
                transport.close()
                return
            handler = self.server.http1()
            transport.set_protocol(handler)
            handler.connection_made(transport)
            return
        self.transport = transport
        self.memory = self.server.new_memory()
        self.server.connections[self.memory.number] = self
        configuration = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self.connection = h2.connection.H2Connection(configuration)
        self.limit = self.next_limit = self.server.first_streams
        codes = h2.settings.SettingCodes
        self.connection.local_settings = h2.settings.Settings(
            client=False, initial_values={codes.MAX_CONCURRENT_STREAMS: self.limit, codes.MAX_HEADER_LIST_SIZE: 65_536})
        self.connection.initiate_connection()
        # A client may open streams before it has the SETTINGS. h2 would end the connection: this class refuses the
        # streams, and counts an error only after the client has acknowledged.
        self.connection.local_settings = h2.settings.Settings(
            client=False, initial_values={codes.MAX_HEADER_LIST_SIZE: 65_536, codes.MAX_CONCURRENT_STREAMS: 1 << 30})
        self.flush()

    def connection_lost(self, _):
        if self.memory:
            self.server.connections.pop(self.memory.number, None)
        self.requests.clear()

    def flush(self):
        data = self.connection.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def pause_writing(self):
        self.paused = True

    def resume_writing(self):
        self.paused = False
        for stream in list(self.unsent):
            self.pump(stream)
        self.flush()

    def data_received(self, data):
        if self.is_mute:
            return
        try:
            events = self.connection.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            self.server.protocol_error("HTTP/2", f"{type(error).__name__}: {error}", connection=self.memory.number)
            self.flush()
            self.transport.close()
            return
        for event in events:
            self.handle(event)
        self.flush()

    def handle(self, event):
        match event:
            case h2.events.RequestReceived():
                self.request_began(event)
            case h2.events.DataReceived():
                self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                request = self.requests.get(event.stream_id)
                if request is None:
                    return
                request.body += event.data
                if len(request.body) > BODY_MAX:
                    self.end_stream(event.stream_id, ErrorCodes.CANCEL)
            case h2.events.StreamEnded():
                request = self.requests.get(event.stream_id)
                if request is not None:
                    self.request_ended(request)
            case h2.events.StreamReset():
                if self.requests.pop(event.stream_id, None):
                    self.server.counters["resets"] += 1
                self.unsent.pop(event.stream_id, None)
                self.close_after_goaway()
            case h2.events.SettingsAcknowledged():
                self.is_acknowledged = True
            case h2.events.PingReceived():
                self.server.counters["pings"] += 1
            case h2.events.WindowUpdated():
                for stream in [event.stream_id] if event.stream_id else list(self.unsent):
                    self.pump(stream)
            case h2.events.ConnectionTerminated():
                self.transport.close()

    def request_began(self, event):
        stream = event.stream_id
        if self.last_stream is not None and stream > self.last_stream:
            # Not processed: the client has the GOAWAY that says so, or will have it.
            return
        if len(self.requests) >= self.limit:
            self.server.counters["refusedStreams"] += 1
            if self.is_acknowledged:
                self.server.protocol_error(
                    "HTTP/2", f"stream {stream} is one more than {self.limit} at once", connection=self.memory.number)
            self.connection.reset_stream(stream, ErrorCodes.REFUSED_STREAM)
            return
        headers = [(name, value) for name, value in event.headers if not name.startswith(":")]
        special = dict(event.headers)
        self.requests[stream] = Request(special[":method"], special[":path"], headers, b"", self.memory, stream)
        self.server.streams_max = max(self.server.streams_max, len(self.requests))

    def request_ended(self, request):
        stream = request.stream
        response = self.server.respond(request)
        if self.server.raises_early:
            self.raise_limit()
        if response.delay:
            asyncio.get_running_loop().call_later(response.delay, self.send_later, stream, response)
        else:
            self.send(stream, response)
        self.raise_limit()

    def raise_limit(self):
        if self.next_limit != self.limit:
            self.limit = self.next_limit
            self.connection.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self.limit})

    def send_later(self, stream, response):
        if self.transport.is_closing() or self.is_mute:
            return
        self.send(stream, response)
        self.flush()

    def send(self, stream, response):
        if stream not in self.requests:
            return
        match response.fault:
            case "silent":
                return
            case "mute":
                self.is_mute = True
                return
            case "close":
                self.transport.abort()
                return
            case "reset" | "refused":
                refused = response.fault == "refused"
                self.end_stream(stream, ErrorCodes.REFUSED_STREAM if refused else ErrorCodes.INTERNAL_ERROR)
                return
            case "goawayBefore":
                for other in [one for one in self.requests if one >= stream]:
                    del self.requests[other]
                self.go_away(max(stream - 2, 0))
                return
        headers = [(":status", str(response.status)), *response.headers.items()]
        is_endless = response.fault == "endless"
        self.connection.send_headers(stream, headers, end_stream=not response.body and not is_endless)
        if is_endless:
            self.unsent[stream] = None
            self.pump(stream)
            return
        if response.body:
            self.unsent[stream] = response.body
            self.pump(stream)
        else:
            self.response_ended(stream)
        if response.fault == "goawayAfter":
            self.go_away(max([stream, *self.requests]))

    def pump(self, stream):
        """Sends what the windows allow of a body; None is one without an end."""
        while stream in self.unsent and not self.paused:
            if self.transport.is_closing():
                self.unsent.clear()
                return
            rest = self.unsent[stream]
            space = min(
                self.connection.local_flow_control_window(stream), self.connection.max_outbound_frame_size, 16_384)
            if space <= 0:
                return
            if rest is None:
                self.connection.send_data(stream, b"x" * space)
                self.flush()
                continue
            piece, rest = rest[:space], rest[space:]
            self.connection.send_data(stream, piece, end_stream=not rest)
            if rest:
                self.unsent[stream] = rest
            else:
                del self.unsent[stream]
                self.response_ended(stream)

    def response_ended(self, stream):
        self.requests.pop(stream, None)
        self.close_after_goaway()

    def end_stream(self, stream, code):
        self.connection.reset_stream(stream, code)
        self.requests.pop(stream, None)
        self.close_after_goaway()

    def go_away(self, last_stream):
        """Announces that later streams are not processed, and closes after the earlier ones. h2 would send nothing
        after a GOAWAY, so that the frame is made here."""
        self.last_stream = last_stream
        self.flush()
        frame = hyperframe.frame.GoAwayFrame(
            stream_id=0, last_stream_id=last_stream, error_code=0, additional_data=b'{"reason":"Shutdown"}')
        self.transport.write(frame.serialize())
        self.close_after_goaway()

    def close_after_goaway(self):
        if self.last_stream is not None and not self.requests:
            self.flush()
            self.transport.close()
