"""Notifications of the honest user: another user writes, and a webhook of the honest one receives."""

import http.server
import json
import threading
import time

from wire import Client, Lost, line

PATH = "/shared/honest/notified"
ADDRESS = "127.0.0.3"


class Webhook:
    """Registered for the honest user; `send` writes a number and waits for its notification."""

    def __init__(self, setup):
        self.arrived, self.changed = set(), threading.Condition()
        # Listens from now on; the process that calls `start` responds.
        self.server = http.server.ThreadingHTTPServer((ADDRESS, 0), self._handler())
        self.server.daemon_threads = True
        notifier = Client(setup.ports, "notifier", setup.honest)
        notifier.call("notifier.devices.register", {
            "platform": "webhook", "url": f"http://{ADDRESS}:{self.server.server_address[1]}"})
        notifier.close()
        setup.call("notifier", "notifier.triggers.set", {
            "id": "honest", "pattern": setup.honest_pattern, "on": ["created"], "recipients": setup.honest_recipients,
            "notification": {"title": "{after.n}"}})
        # Authors get no notifications of their own writes.
        self.author = Client(setup.ports, "messages", setup.author)

    def start(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def send(self, number, seconds):
        """Raises Refused if the write is refused, and Lost if the notification does not come."""
        end = time.monotonic() + seconds
        self.author.send(line("messages.push", {"path": PATH, "value": {"n": number}}), seconds=seconds)
        with self.changed:
            if not self.changed.wait_for(lambda: number in self.arrived, max(0, end - time.monotonic())):
                raise Lost("no notification in time")

    def _handler(self):
        webhook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Responds at once."""

            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with webhook.changed:
                    webhook.arrived.add(int(float(body["data"]["title"])))
                    webhook.changed.notify_all()
                self.send_response(204)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        return Handler
