"""What an app does with pyrebase, as a program of its own: pyrebase needs an environment of its own.

Its arguments are the URL of the gateway and an ID token, or nothing, with which it signs up by pyrebase. pyrebase has
the hosts of Firebase in its code: an adapter of `requests` turns them to the gateway, as an emulator's host does. Prints
a JSON object of what it saw.
"""

import json
import queue
import sys
from urllib.parse import urlsplit

import pyrebase
import requests

DEADLINE = 60
TEXT = "いまから帰ります"


class TurningAdapter(requests.adapters.HTTPAdapter):
    """Sends requests for Firebase's hosts to the gateway, the host before the path."""

    def __init__(self, url):
        self.url = url
        super().__init__()

    def send(self, request, **options):
        parts = urlsplit(request.url)
        query = f"?{parts.query}" if parts.query else ""
        request.url = f"{self.url}/{parts.netloc}{parts.path}{query}"
        return super().send(request, **options)


class TurningSession(requests.Session):
    url = None

    def __init__(self):
        super().__init__()
        for host in ("identitytoolkit.googleapis.com", "securetoken.googleapis.com", "www.googleapis.com"):
            self.mount(f"https://{host}", TurningAdapter(self.url))


def close(stream):
    # pyrebase shuts its socket down, then looks it up once more to close it: by then its reader, which the shutdown
    # ends, may have let it go.
    try:
        stream.close()
    except AttributeError:
        stream.thread.join(DEADLINE)
    if stream.thread.is_alive():
        raise AssertionError("the stream's reader is at its end once the stream is closed")


def use_database(database, token):
    room = lambda: database.child("rooms").child("python")
    seen = {"set": room().set({"name": "磯野家", "n": 1}, token)}
    seen["get"] = room().get(token).val()
    seen["update"] = room().update({"n": 2}, token)
    for number in range(3):
        room().child("messages").push({"date": number, "text": f"{TEXT}{number}"}, token)
    last = room().child("messages").order_by_child("date").limit_to_last(1).get(token)
    seen["last"] = [item.val() for item in last.each()]
    ranged = room().child("messages").order_by_child("date").start_at(0).end_at(1).get(token)
    seen["ranged"] = [item.val()["date"] for item in ranged.each()]
    equal = room().child("messages").order_by_child("text").equal_to(f"{TEXT}1").get(token)
    seen["equal"] = [item.val()["date"] for item in equal.each()]
    seen["shallow"] = sorted(room().shallow().get(token).val())
    etag = room().child("n").get_etag(token)
    stale = room().child("n").conditional_set(7, "stale", token)
    seen["stale"] = sorted(stale)
    seen["conditional"] = room().child("n").conditional_set(3, etag["ETag"], token)
    events = queue.Queue()
    stream = database.child("rooms").child("python").child("n").stream(events.put, token=token)
    seen["events"] = [events.get(timeout=DEADLINE)]
    database.child("rooms").child("python").child("n").set(4, token)
    seen["events"].append(events.get(timeout=DEADLINE))
    close(stream)
    room().child("messages").remove(token)
    seen["removed"] = room().child("messages").get(token).val()
    try:
        database.child("private").get(token)
    except requests.exceptions.HTTPError as error:
        seen["denied"] = error.args[0].response.status_code
    return seen


def sign_up(authentication):
    user = authentication.create_user_with_email_and_password("masuo@example.com", "correct horse battery")
    again = authentication.sign_in_with_email_and_password("masuo@example.com", "correct horse battery")
    refreshed = authentication.refresh(again["refreshToken"])
    info = authentication.get_account_info(refreshed["idToken"])
    seen = {"sameUser": user["localId"] == again["localId"] == refreshed["userId"], "email": info["users"][0]["email"]}
    try:
        authentication.sign_in_with_email_and_password("masuo@example.com", "wrong password here")
    except requests.exceptions.HTTPError as error:
        seen["wrong"] = json.loads(error.args[1])["error"]["message"]
    return refreshed["idToken"], seen


def main():
    url, token = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    TurningSession.url = url
    pyrebase.pyrebase.requests.Session = TurningSession
    # Some of its requests use no session.
    for name in ("get", "post", "put", "patch", "delete"):
        def request(*arguments, name=name, **options):
            return getattr(TurningSession(), name)(*arguments, **options)
        setattr(pyrebase.pyrebase.requests, name, request)
    firebase = pyrebase.initialize_app({
        "apiKey": "key", "authDomain": "hato.firebaseapp.com", "databaseURL": url, "storageBucket": "hato.appspot.com"})
    seen = {}
    if token is None:
        token, seen["account"] = sign_up(firebase.auth())
    seen["database"] = use_database(firebase.database(), token)
    print(json.dumps(seen, ensure_ascii=False))


main()
