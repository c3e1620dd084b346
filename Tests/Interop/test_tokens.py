"""firebase-admin makes a custom token that signs in, and PyJWT verifies our tokens and cookies by auth.keys."""

import asyncio
import unittest

import aiorpcx
import firebase_admin
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from firebase_admin import auth, credentials

from stack import Stack

PROJECT = "hato"
EMAIL = "backend@chat.iam.gserviceaccount.com"


def service_account():
    """The JSON of a new service account, as Google's console makes it, and its public key in PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    account = {
        "type": "service_account", "project_id": PROJECT, "private_key_id": "1", "private_key": private.decode(),
        "client_email": EMAIL, "client_id": "1", "token_uri": "https://oauth2.googleapis.com/token",
    }
    return account, public.decode()


class TokensTest(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = Stack().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.stack.__exit__()

    def connect(self):
        return aiorpcx.connect_rs(*self.stack.address("auth"))

    async def verified(self, session, token, issuer):
        keys = jwt.PyJWKSet.from_dict(await session.send_request("auth.keys", {}))
        key = keys[jwt.get_unverified_header(token)["kid"]]
        return jwt.decode(
            token, key, algorithms=["ES256"], audience=PROJECT, issuer=f"https://{issuer}/{PROJECT}",
            options={"require": ["exp", "iat", "sub"]})

    async def test_a_custom_token_of_firebase_admin_signs_in(self):
        account, public_key = await asyncio.to_thread(service_account)
        app = firebase_admin.initialize_app(credentials.Certificate(account), name="signs-in")
        self.addCleanup(firebase_admin.delete_app, app)
        token = auth.create_custom_token("masuo-1", {"room": "hq"}, app=app).decode()
        async with self.connect() as session:
            with self.assertRaises(aiorpcx.RPCError) as unknown:
                await session.send_request("auth.signInWithCustomToken", {"token": token})
            self.assertIn("not registered", unknown.exception.message)
            signer = await session.send_request(
                "auth.customToken.signers.set",
                {"auth": self.stack.admin_key, "email": EMAIL, "publicKey": public_key})
            self.assertEqual((signer["email"], signer["keyBits"]), (EMAIL, 2048))
            user = await session.send_request("auth.signInWithCustomToken", {"token": token, "label": "Python"})
            self.assertEqual((user["uid"], user["isNewUser"]), ("masuo-1", True))
            again = await session.send_request("auth.refresh", {"refreshToken": user["refreshToken"]})
            for id_token in (user["idToken"], again["idToken"]):
                claims = await self.verified(session, id_token, "securetoken.google.com")
                self.assertEqual((claims["sub"], claims["room"]), ("masuo-1", "hq"))
                self.assertEqual(claims["firebase"]["sign_in_provider"], "custom")
            # Another key for the same account.
            other, _ = await asyncio.to_thread(service_account)
            stranger = firebase_admin.initialize_app(credentials.Certificate(other), name="stranger")
            self.addCleanup(firebase_admin.delete_app, stranger)
            forged = auth.create_custom_token("masuo-1", app=stranger).decode()
            with self.assertRaises(aiorpcx.RPCError) as wrong:
                await session.send_request("auth.signInWithCustomToken", {"token": forged})
            self.assertIn("signature", wrong.exception.message)
            with self.assertRaises(aiorpcx.RPCError):
                await session.send_request(
                    "auth.customToken.signers.set",
                    {"auth": self.stack.admin_key, "email": EMAIL, "publicKey": account["private_key"]})

    async def test_pyjwt_verifies_id_tokens_and_session_cookies(self):
        async with self.connect() as session:
            user = await session.send_request("auth.signUp", {})
            claims = await self.verified(session, user["idToken"], "securetoken.google.com")
            self.assertEqual(claims["sub"], user["uid"])
            made = await session.send_request(
                "auth.sessionCookie.create",
                {"auth": self.stack.admin_key, "idToken": user["idToken"], "validForSeconds": 300})
            cookie = made["sessionCookie"]
            # Also after the key has retired.
            for _ in range(2):
                verified = await self.verified(session, cookie, "session.firebase.google.com")
                self.assertEqual((verified["sub"], verified["exp"] - verified["iat"]), (user["uid"], 300))
                self.assertEqual(
                    await session.send_request("auth.sessionCookie.verify", {"sessionCookie": cookie}), verified)
                await session.send_request("auth.keys.rotate", {"auth": self.stack.admin_key})
            with self.assertRaises(jwt.InvalidIssuerError):
                await self.verified(session, cookie, "securetoken.google.com")
            with self.assertRaises(jwt.InvalidIssuerError):
                await self.verified(session, user["idToken"], "session.firebase.google.com")
            custom = await session.send_request(
                "auth.customToken.create", {"auth": self.stack.admin_key, "uid": "masuo-2"})
            with self.assertRaises(jwt.InvalidTokenError):
                await self.verified(session, custom["token"], "securetoken.google.com")


if __name__ == "__main__":
    unittest.main()
