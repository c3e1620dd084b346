"""The honest client, in a process of its own: two connections to messages, one to auth for its sign-ins, a webhook."""

import os
import signal
import threading
import time

from wire import CONTEXT, Client, Lost, Refused, line, set_line

EMAIL, PASSWORD = "honest@example.com", "honest and patient"
OPERATIONS = ("small set", "small get", "300 kB set", "300 kB get", "listen", "sign-in", "notification")
SECONDS_MAX = 30.0
SIGN_IN_EVERY = 2.0
LISTEN_EVERY = 0.2
NOTIFY_EVERY = 0.5
SMALL, LARGE, LIST = "/shared/honest/small", "/shared/honest/large", "/shared/honest/list"
TEXT = "h" * 300_000


class Figures:
    """What happened to the operations of one kind during one attack."""

    def __init__(self):
        # Seconds of each response, refusals included.
        self.seconds = []
        self.answered, self.wrong = 0, 0
        self.refused, self.lost = {}, {}
        self.longest_lost = 0.0

    def percentile(self, part):
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None

    def longest(self):
        return max([*self.seconds, self.longest_lost])


class HonestClient:
    """Handle of the process. `phase` is the index of the attack that runs."""

    def __init__(self, setup, source, webhook):
        self.source, self.webhook = source, webhook
        self.phase = CONTEXT.RawValue("i", 0)
        # The moment from which on `first_response` is wanted, and that response's moment; 0: none.
        self.asked = CONTEXT.RawValue("d", 0)
        self.first_response = CONTEXT.RawValue("d", 0)
        self.ends = CONTEXT.RawValue("i", 0)
        self.compares_from = 0.0
        self.receiver, sender = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(target=self._run, args=(setup.ports, setup.honest, sender), daemon=True)
        self.process.start()

    def finish(self):
        """Ends the process. Returns `{(phase, operation): Figures}`, or nothing if it does not end."""
        self.ends.value = 1
        figures = self.receiver.recv() if self.receiver.poll(2 * SECONDS_MAX) else {}
        self.process.join(timeout=5)
        self.stop()
        return figures

    def stop(self):
        if self.process.is_alive():
            self.process.kill()
        self.process.join()

    def _run(self, ports, token, sender):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        parent, figures, number = os.getppid(), {}, 0
        # Beside the other operations: a password takes a processor for a tenth of a second.
        sign_ins = threading.Thread(target=self._sign_in, args=(Client(ports, "auth", source=self.source), figures))
        sign_ins.start()
        self.webhook.start()
        notifications = threading.Thread(target=self._notify, args=(figures,))
        notifications.start()
        listens = threading.Thread(target=self._listen, args=(Client(ports, "messages", token, self.source), figures))
        listens.start()
        messages = Client(ports, "messages", token, self.source)
        while not self.ends.value and os.getppid() == parent:
            number += 1
            small, large = {"n": number}, {"n": number, "text": TEXT}
            for operation, data, expected in (
                    ("small set", line("messages.set", {"path": SMALL, "value": small}), None),
                    ("small get", line("messages.get", {"path": SMALL}), small),
                    ("300 kB set", line("messages.set", {"path": LARGE, "value": large}), None),
                    ("300 kB get", line("messages.get", {"path": LARGE}), large)):
                self._measure(figures, operation, messages, (data, expected))
            # Leaves processor time to the attack.
            time.sleep(0.005)
        # Also where the parent is gone.
        self.ends.value = 1
        sign_ins.join()
        notifications.join()
        listens.join()
        sender.send(figures)

    def _sign_in(self, auth, figures):
        data = line("auth.signIn", {"email": EMAIL, "password": PASSWORD})
        while not self.ends.value:
            begin = time.monotonic()
            self._measure(figures, "sign-in", auth, (data, None))
            self._pause(begin + SIGN_IN_EVERY)

    def _notify(self, figures):
        number = 0
        while not self.ends.value:
            number += 1
            begin = time.monotonic()
            self._measure(figures, "notification", self.webhook, (number, None))
            self._pause(begin + NOTIFY_EVERY)

    def _pause(self, end):
        while not self.ends.value and time.monotonic() < end:
            time.sleep(0.05)

    def _listen(self, client, figures):
        """Listens again and again to 200 children, by a query for which there is no index."""
        value = "{" + ",".join(f'"k{number:03}":{{"date":{number}}}' for number in range(200)) + "}"
        is_there = False
        while not self.ends.value:
            begin = time.monotonic()
            kept = figures.setdefault((self.phase.value, "listen"), Figures())
            try:
                if not is_there:
                    client.send(set_line(LIST, value))
                    is_there = True
                kept.seconds.append(client.listen({"path": LIST, "query": {"orderBy": "date"}}, SECONDS_MAX))
                kept.answered += 1
            except Refused as error:
                kept.refused[str(error)] = kept.refused.get(str(error), 0) + 1
            except Lost as error:
                kept.longest_lost = max(kept.longest_lost, time.monotonic() - begin)
                kept.lost[str(error)] = kept.lost.get(str(error), 0) + 1
            self._pause(begin + LISTEN_EVERY)

    def _measure(self, figures, operation, client, call):
        data, expected = call
        kept = figures.setdefault((self.phase.value, operation), Figures())
        begin = time.monotonic()
        try:
            result = client.send(data, seconds=SECONDS_MAX)
            end = time.monotonic()
            kept.answered += 1
            kept.seconds.append(end - begin)
            kept.wrong += expected is not None and end > self.compares_from and result["value"] != expected
            if self.asked.value and not self.first_response.value and end > self.asked.value:
                self.first_response.value = end
        except Refused as error:
            # What was not written is not read in this round.
            if operation.endswith("set"):
                self.compares_from = time.monotonic() + 1
            kept.seconds.append(time.monotonic() - begin)
            kept.refused[str(error)] = kept.refused.get(str(error), 0) + 1
        except Lost as error:
            # A set without a response may be written, also later: gets have no known value for a time.
            self.compares_from = time.monotonic() + SECONDS_MAX
            kept.longest_lost = max(kept.longest_lost, time.monotonic() - begin)
            kept.lost[str(error)] = kept.lost.get(str(error), 0) + 1
            # A server that is down refuses at once.
            time.sleep(0.05)
