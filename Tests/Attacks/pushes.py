"""Pushes beside an attack during which the server is killed: each with a response must be there exactly once."""

import os
import signal
import time

from wire import CONTEXT, Client, Lost, Refused

PATH = "/shared/honest/pushes"
ALPHABET = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"


def push_key():
    """A key as clients make it: 8 characters of milliseconds, 12 random ones."""
    number = int(time.time() * 1_000) << 72 | int.from_bytes(os.urandom(9), "big")
    return "".join(ALPHABET[number >> 6 * place & 63] for place in reversed(range(20)))


class Pusher:
    """Handle of a process that pushes numbers: odd ones with a key of its own, repeated until the response comes."""

    def __init__(self, ports, token):
        self.ends = CONTEXT.RawValue("i", 0)
        self.receiver, sender = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(target=self._run, args=(ports, token, sender), daemon=True)
        self.process.start()

    def finish(self):
        """Returns the numbers whose push got its result, and all that were sent; nothing if the process hangs."""
        self.ends.value = 1
        outcome = self.receiver.recv() if self.receiver.poll(60) else (set(), 0)
        self.stop()
        return outcome

    def stop(self):
        if self.process.is_alive():
            self.process.kill()
        self.process.join()

    def _run(self, ports, token, sender):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        client, answered, number, parent = Client(ports, "messages", token), set(), 0, os.getppid()
        while not self.ends.value and os.getppid() == parent:
            number += 1
            parameters = {"path": PATH, "value": {"n": number}}
            if number % 2 == 1:
                parameters["key"] = push_key()
            while not self.ends.value:
                try:
                    client.call("messages.push", parameters)
                    answered.add(number)
                    break
                except (Lost, Refused):
                    time.sleep(0.05)
                    if "key" not in parameters:
                        break
        sender.send((answered, number))


def check(client, outcome):
    """Compares the tree with what the pusher knows. Returns a line for people, and whether all is right."""
    answered, sent = outcome
    try:
        value = client.call("messages.get", {"path": PATH})["value"] or {}
    except (Lost, Refused) as error:
        return f"pushes: cannot be read: {error}", False
    counts = {}
    for child in value.values():
        counts[child["n"]] = counts.get(child["n"], 0) + 1
    missing = [number for number in answered if number not in counts]
    doubled = [number for number, count in counts.items() if count > 1]
    text = (f"pushes: {sent} sent, {len(answered)} with a response, {len(counts)} there, "
            f"{len(missing)} of those with a response missing, {len(doubled)} there more than once")
    return text, bool(answered) and not missing and not doubled
