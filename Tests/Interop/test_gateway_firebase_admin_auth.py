"""firebase_admin.auth against the gateway: over TLS with the administrator's key as access token, and against an
emulator, as FIREBASE_AUTH_EMULATOR_HOST and FIREBASE_DATABASE_EMULATOR_HOST name it.
"""

import base64
import datetime
import os
import time
import unittest
import urllib.parse
import uuid
from unittest import mock

import firebase_admin
import jwt
import requests
import requests.adapters
from firebase_admin import auth, credentials, db, exceptions

from gateway_stack import DEADLINE, GatewayStack
from test_gateway_firebase_admin import Administrator
from test_tokens import EMAIL, PROJECT, service_account

GOOGLE = "https://identitytoolkit.googleapis.com"
PASSWORD = "correct horse battery ハト"
RULES = {"rules": {"inbox": {"$uid": {
    ".read": "auth.uid === $uid", ".write": "auth.uid === $uid && auth.token.vip === true"}}}}


class Turned(requests.adapters.HTTPAdapter):
    """Sends what is meant for a host of Google to the gateway, with that host as first part of the path."""

    def __init__(self, url):
        super().__init__()
        self.url = url

    def send(self, request, **options):
        parts = urllib.parse.urlsplit(request.url)
        request.url = f"{self.url}/{parts.netloc}{request.path_url}"
        return super().send(request, **options)


class AuthOfAServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = cls.enterClassContext(GatewayStack(RULES, tls=True, auth=["--continue-domains", "example.com"]))
        cls.enterClassContext(mock.patch.dict(os.environ, {"REQUESTS_CA_BUNDLE": cls.stack.authority}))
        options = {"projectId": PROJECT, "databaseURL": cls.stack.url}
        cls.app = firebase_admin.initialize_app(Administrator(), options, name=uuid.uuid4().hex)
        cls.addClassCleanup(firebase_admin.delete_app, cls.app)
        auth._get_client(cls.app)._user_manager.http_client.session.mount(GOOGLE, Turned(cls.stack.url))
        cls.account, public_key = service_account()
        cls.stack.call("auth", "auth.customToken.signers.set", email=EMAIL, publicKey=public_key)

    def post(self, path, **body):
        """What an SDK of a client gets, with no more than an API key."""
        return requests.post(f"{self.stack.url}/{path}?key=none", json=body, timeout=DEADLINE)

    def sign_in(self, email, password=PASSWORD):
        response = self.post(
            "v1/accounts:signInWithPassword", email=email, password=password, returnSecureToken=True)
        self.assertEqual(response.status_code, 200, response.text)
        return response.json()

    def new_user(self, **members):
        uid = uuid.uuid4().hex
        email = f"{uid}@example.com"
        return auth.create_user(uid=uid, email=email, password=PASSWORD, app=self.app, **members), email

    def claims(self, token, issuer="securetoken.google.com"):
        """The claims of a token, verified by the keys of the gateway."""
        keys = jwt.PyJWKSet.from_dict(
            requests.get(f"{self.stack.url}/.well-known/jwks.json", timeout=DEADLINE).json())
        key = keys[jwt.get_unverified_header(token)["kid"]]
        return jwt.decode(
            token, key, algorithms=["ES256"], audience=PROJECT, issuer=f"https://{issuer}/{PROJECT}", leeway=5)

    def test_users_are_made_found_changed_and_deleted(self):
        began = time.time()
        user, email = self.new_user(display_name="マスオ", email_verified=True, photo_url="https://example.com/m")
        self.assertEqual((user.email, user.display_name, user.email_verified), (email, "マスオ", True))
        self.assertEqual((user.photo_url, user.disabled, user.custom_claims), ("https://example.com/m", False, None))
        self.assertAlmostEqual(user.user_metadata.creation_timestamp / 1000, began, delta=DEADLINE)
        self.assertIsNone(user.user_metadata.last_sign_in_timestamp)
        self.assertEqual([provider.provider_id for provider in user.provider_data], ["password"])
        self.sign_in(email)
        for found in (auth.get_user(user.uid, self.app), auth.get_user_by_email(email, self.app)):
            self.assertEqual((found.uid, found.display_name), (user.uid, "マスオ"))
            self.assertAlmostEqual(found.user_metadata.last_sign_in_timestamp / 1000, began, delta=DEADLINE)
        several = auth.get_users(
            [auth.UidIdentifier(user.uid), auth.EmailIdentifier("no@example.com"), auth.UidIdentifier("none")],
            self.app)
        self.assertEqual([found.uid for found in several.users], [user.uid])
        self.assertEqual(len(several.not_found), 2)
        changed = auth.update_user(
            user.uid, display_name=auth.DELETE_ATTRIBUTE, email=f"new.{email}", disabled=True, app=self.app)
        self.assertEqual((changed.display_name, changed.email, changed.disabled), (None, f"new.{email}", True))
        refused = self.post("v1/accounts:signInWithPassword", email=f"new.{email}", password=PASSWORD)
        self.assertEqual((refused.status_code, refused.json()["error"]["message"]), (400, "USER_DISABLED"))
        auth.delete_user(user.uid, self.app)
        for ask in (
            lambda: auth.get_user(user.uid, self.app), lambda: auth.get_user_by_email(f"new.{email}", self.app),
            lambda: auth.update_user(user.uid, disabled=False, app=self.app),
            lambda: auth.delete_user(user.uid, self.app),
        ):
            with self.assertRaises(auth.UserNotFoundError):
                ask()

    def test_what_is_taken_or_wrong_is_refused(self):
        user, email = self.new_user()
        with self.assertRaises(auth.UidAlreadyExistsError):
            auth.create_user(uid=user.uid, app=self.app)
        with self.assertRaises(auth.EmailAlreadyExistsError):
            auth.create_user(email=email, app=self.app)
        with mock.patch.object(Administrator.Token, "refresh", lambda token, _: setattr(token, "token", "no-key")):
            stranger = firebase_admin.initialize_app(
                Administrator(), {"projectId": PROJECT}, name=uuid.uuid4().hex)
            self.addCleanup(firebase_admin.delete_app, stranger)
            session = auth._get_client(stranger)._user_manager.http_client.session
            session.mount(GOOGLE, Turned(self.stack.url))
            with self.assertRaises(exceptions.UnauthenticatedError):
                auth.get_user(user.uid, stranger)

    def test_users_are_listed_and_deleted_by_pages(self):
        uids = {self.new_user()[0].uid for _ in range(5)}
        page, seen = auth.list_users(max_results=2, app=self.app), []
        self.assertEqual(len(page.users), 2)
        while page:
            seen += [user.uid for user in page.users]
            page = page.get_next_page()
        self.assertEqual(len(seen), len(set(seen)))
        self.assertLessEqual(uids, set(seen))
        self.assertEqual(uids & {user.uid for user in auth.list_users(app=self.app).iterate_all()}, uids)
        result = auth.delete_users([*uids, "none"], self.app)
        self.assertEqual((result.success_count, result.failure_count), (6, 0))
        self.assertEqual(auth.get_users([auth.UidIdentifier(uid) for uid in uids], self.app).users, [])

    def test_imported_users_sign_in_with_their_passwords(self):
        # The example of firebase/scrypt: its project's parameters, and a password.
        key = base64.b64decode(
            "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==")
        scrypt = auth.UserImportHash.scrypt(
            key=key, salt_separator=base64.b64decode("Bw=="), rounds=8, memory_cost=14)
        uid = uuid.uuid4().hex
        users = [
            auth.ImportUserRecord(
                uid=uid, email=f"{uid}@example.com", display_name="タラ", custom_claims={"vip": True},
                password_hash=base64.b64decode(
                    "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=="),
                password_salt=base64.b64decode("42xEC+ixf3L2lw==")),
            auth.ImportUserRecord(
                uid=f"{uid}-2", user_metadata=auth.UserMetadata(1_500_000_000_000, 1_600_000_000_000)),
        ]
        result = auth.import_users(users, scrypt, self.app)
        self.assertEqual((result.success_count, result.failure_count), (2, 0), [e.reason for e in result.errors])
        self.assertEqual(auth.get_user(uid, self.app).custom_claims, {"vip": True})
        second = auth.get_user(f"{uid}-2", self.app).user_metadata
        self.assertEqual(second.creation_timestamp, 1_500_000_000_000)
        session = self.sign_in(f"{uid}@example.com", "user1password")
        self.assertTrue(self.claims(session["idToken"])["vip"])

    def test_a_custom_token_is_exchanged(self):
        # The library signs with the key of a service account; auth knows its public key.
        app = firebase_admin.initialize_app(credentials.Certificate(self.account), name=uuid.uuid4().hex)
        self.addCleanup(firebase_admin.delete_app, app)
        uid = uuid.uuid4().hex
        token = auth.create_custom_token(uid, {"vip": True}, app).decode()
        response = self.post("v1/accounts:signInWithCustomToken", token=token, returnSecureToken=True)
        self.assertEqual((response.status_code, response.json()["isNewUser"]), (200, True), response.text)
        id_token = response.json()["idToken"]
        claims = self.claims(id_token)
        self.assertEqual((claims["sub"], claims["vip"], claims["firebase"]["sign_in_provider"]), (uid, True, "custom"))
        inbox = f"{self.stack.url}/inbox/{uid}.json?ns={PROJECT}&auth="
        self.assertEqual(requests.put(inbox + id_token, json="おかえり", timeout=DEADLINE).status_code, 200)
        self.assertEqual(db.reference(f"inbox/{uid}", self.app).get(), "おかえり")
        spoiled = self.post("v1/accounts:signInWithCustomToken", token=token[:-8] + "AAAAAAAA", returnSecureToken=True)
        self.assertEqual((spoiled.status_code, spoiled.json()["error"]["message"][:20]), (400, "INVALID_CUSTOM_TOKEN"))

    def test_custom_claims_come_with_the_next_token(self):
        user, email = self.new_user()
        session = self.sign_in(email)
        self.assertNotIn("vip", self.claims(session["idToken"]))
        auth.set_custom_user_claims(user.uid, {"vip": True, "rooms": ["本社"]}, self.app)
        self.assertEqual(auth.get_user(user.uid, self.app).custom_claims, {"vip": True, "rooms": ["本社"]})
        refreshed = requests.post(
            f"{self.stack.url}/v1/token?key=none", timeout=DEADLINE,
            data={"grant_type": "refresh_token", "refresh_token": session["refreshToken"]}).json()
        claims = self.claims(refreshed["id_token"])
        self.assertEqual((claims["vip"], claims["rooms"]), (True, ["本社"]))
        auth.set_custom_user_claims(user.uid, None, self.app)
        self.assertFalse(auth.get_user(user.uid, self.app).custom_claims)

    def test_tokens_are_of_another_algorithm_than_the_library_takes(self):
        # It verifies RS256 only: servers verify ours by the keys of the gateway, as `claims` does.
        _, email = self.new_user()
        with self.assertRaises(auth.InvalidIdTokenError) as refused:
            auth.verify_id_token(self.sign_in(email)["idToken"], self.app)
        self.assertIn('Expected "RS256" but got "ES256"', str(refused.exception))

    def test_revoked_sessions_end(self):
        user, email = self.new_user()
        session = self.sign_in(email)
        began = time.time()
        auth.revoke_refresh_tokens(user.uid, self.app)
        after = auth.get_user(user.uid, self.app).tokens_valid_after_timestamp
        self.assertAlmostEqual(after / 1000, began, delta=DEADLINE)
        response = requests.post(
            f"{self.stack.url}/v1/token?key=none", timeout=DEADLINE,
            data={"grant_type": "refresh_token", "refresh_token": session["refreshToken"]})
        self.assertEqual(response.status_code, 400)
        self.assertIn(response.json()["error"]["message"], ("TOKEN_EXPIRED", "INVALID_REFRESH_TOKEN"))

    def test_session_cookies(self):
        user, email = self.new_user()
        id_token = self.sign_in(email)["idToken"]
        cookie = auth.create_session_cookie(id_token, datetime.timedelta(hours=1), self.app)
        claims = self.claims(cookie, "session.firebase.google.com")
        self.assertEqual((claims["sub"], claims["exp"] - claims["iat"]), (user.uid, 3600))
        with self.assertRaises(auth.InvalidIdTokenError):
            auth.create_session_cookie(id_token[:-8] + "AAAAAAAA", datetime.timedelta(hours=1), self.app)

    def test_links_act_once(self):
        user, email = self.new_user()
        settings = auth.ActionCodeSettings("https://example.com/next")

        def code(link, mode):
            # auth has no action-url here: the link is that of the page of the app.
            self.assertEqual(link.split("?")[0], "https://example.com/next")
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(link).query)
            self.assertEqual(query["mode"], [mode])
            return query["oobCode"][0]

        verify = code(auth.generate_email_verification_link(email, settings, self.app), "verifyEmail")
        self.assertEqual(self.post("v1/accounts:update", oobCode=verify).status_code, 200)
        self.assertTrue(auth.get_user(user.uid, self.app).email_verified)
        reset = code(auth.generate_password_reset_link(email, settings, self.app), "resetPassword")
        for status in (200, 400):
            new = self.post("v1/accounts:resetPassword", oobCode=reset, newPassword=f"{PASSWORD} too")
            self.assertEqual(new.status_code, status, new.text)
        self.sign_in(email, f"{PASSWORD} too")
        sign_in = code(
            auth.generate_sign_in_with_email_link(
                email, auth.ActionCodeSettings(settings.url, handle_code_in_app=True), self.app), "signIn")
        signed = self.post("v1/accounts:signInWithEmailLink", oobCode=sign_in, email=email)
        self.assertEqual((signed.status_code, signed.json()["localId"]), (200, user.uid), signed.text)
        with self.assertRaises(auth.UserNotFoundError):
            auth.generate_email_verification_link("no@example.com", settings, self.app)


class EmulatorTest(unittest.TestCase):
    def test_the_library_finds_the_emulator_by_its_variables(self):
        with GatewayStack(RULES, emulator=True) as stack:
            hosts = {"FIREBASE_AUTH_EMULATOR_HOST": stack.host, "FIREBASE_DATABASE_EMULATOR_HOST": stack.host}
            with mock.patch.dict(os.environ, hosts):
                app = firebase_admin.initialize_app(
                    Administrator(), {"projectId": PROJECT, "databaseURL": f"https://{PROJECT}.firebaseio.com"},
                    name=uuid.uuid4().hex)
                try:
                    self.check(app, stack)
                finally:
                    firebase_admin.delete_app(app)

    def check(self, app, stack):
        auth.create_user(uid="masuo", email="masuo@example.com", app=app)
        self.assertEqual(auth.get_user_by_email("masuo@example.com", app).uid, "masuo")
        # Unsigned in emulator mode.
        token = auth.create_custom_token("masuo", {"vip": True}, app).decode()
        signed = requests.post(
            f"{stack.url}/identitytoolkit.googleapis.com/v1/accounts:signInWithCustomToken?key=none",
            json={"token": token, "returnSecureToken": True}, timeout=DEADLINE).json()
        self.assertEqual(auth.verify_id_token(signed["idToken"], app, check_revoked=True)["uid"], "masuo")
        cookie = auth.create_session_cookie(signed["idToken"], datetime.timedelta(hours=1), app)
        self.assertEqual(auth.verify_session_cookie(cookie, check_revoked=True, app=app)["uid"], "masuo")
        inbox = db.reference("inbox/masuo", app)
        inbox.set("おかえり")
        self.assertEqual(inbox.get(), "おかえり")
        written = requests.put(
            f"{stack.url}/inbox/masuo.json?ns={PROJECT}&auth={signed['idToken']}", json=1, timeout=DEADLINE)
        self.assertEqual((written.status_code, inbox.get()), (200, 1), written.text)
        link = auth.generate_email_verification_link("masuo@example.com", app=app)
        self.assertIn("mode=verifyEmail", link)
        # Times of tokens are whole seconds: the token must be older than what revokes it.
        issued = auth.verify_id_token(signed["idToken"], app)["iat"]
        deadline = time.monotonic() + DEADLINE
        while time.time() < issued + 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        auth.revoke_refresh_tokens("masuo", app)
        with self.assertRaises(auth.RevokedIdTokenError):
            auth.verify_id_token(signed["idToken"], app, check_revoked=True)
        auth.delete_user("masuo", app)
        with self.assertRaises(auth.UserNotFoundError):
            auth.get_user("masuo", app)


if __name__ == "__main__":
    unittest.main()
