"""oidc-provider-mock, an independent issuer of OpenID Connect, issues ID tokens that sign in, link and are refused the
second time; joserfc forges hostile ones with the keys that an attacker has."""

import json
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import aiorpcx
import oidc_provider_mock
from joserfc import jwk, jws, jwt

from stack import Stack

CLIENT = "com.example.chat"


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as it is."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


def post(url, fields):
    """The response to a form."""
    data = urllib.parse.urlencode(fields).encode()
    try:
        return OPENER.open(urllib.request.Request(url, data=data), timeout=60)
    except urllib.error.HTTPError as response:
        if response.code in (302, 303):
            return response
        raise


def issue(issuer, sub, nonce=None):
    """An ID token by the authorisation code flow, as an app gets it."""
    redirect = "https://chat.example.com/callback"
    query = {"client_id": CLIENT, "redirect_uri": redirect, "response_type": "code", "scope": "openid email profile"}
    if nonce:
        query["nonce"] = nonce
    response = post(f"{issuer}/oauth2/authorize?{urllib.parse.urlencode(query)}", {"sub": sub})
    code = urllib.parse.parse_qs(urllib.parse.urlparse(response.headers["location"]).query)["code"][0]
    response = post(f"{issuer}/oauth2/token", {
        "grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "client_id": CLIENT,
        "client_secret": "secret"})
    return json.load(response)["id_token"]


def say(issuer, sub, **claims):
    """Sets what the issuer says of a user."""
    request = urllib.request.Request(
        f"{issuer}/users/{sub}", data=json.dumps(claims).encode(), method="PUT",
        headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60):
        pass


class ProvidersTest(unittest.IsolatedAsyncioTestCase):
    async def test_tokens_of_an_issuer_sign_in_once_and_link(self):
        with oidc_provider_mock.run_server_in_thread() as server, Stack() as stack:
            issuer = f"http://localhost:{server.server_port}"
            host, port = stack.address("auth")
            async with aiorpcx.connect_rs(host, port) as session:
                async def call(method, **params):
                    return await session.send_request(method, params)

                entry = await call(
                    "auth.providers.set", auth=stack.admin_key, id="oidc.mock", issuer=issuer, clientIds=[CLIENT],
                    trustsEmail=True, allowsSignUp=True)
                self.assertTrue(entry["isDiscovered"] and entry["keyIds"], entry)

                say(issuer, "masuo", email="masuo@example.com", email_verified=True, name="マスオさん")
                token = issue(issuer, "masuo", nonce="n-1")
                user = await call("auth.signInWithProvider", provider="oidc.mock", idToken=token, nonce="n-1")
                self.assertTrue(user["isNewUser"])
                account = await call("auth.account.get", auth=user["idToken"])
                self.assertEqual(account["providerUserInfo"][0]["rawId"], "masuo")
                with self.assertRaisesRegex(aiorpcx.RPCError, "signed in already"):
                    await call("auth.signInWithProvider", provider="oidc.mock", idToken=token, nonce="n-1")
                again = await call("auth.signInWithProvider", provider="oidc.mock", idToken=issue(issuer, "masuo"))
                self.assertEqual(again["uid"], user["uid"])

                say(issuer, "sazae")
                anonymous = await call("auth.signUp")
                linked = await call(
                    "auth.signInWithProvider", provider="oidc.mock", idToken=issue(issuer, "sazae"),
                    link=anonymous["idToken"])
                self.assertEqual((linked["uid"], linked["linked"]), (anonymous["uid"], True))

                await self.forge(call, issuer, issue(issuer, "masuo"), entry["keyIds"][0])

    async def forge(self, call, issuer, token, kid):
        """What an attacker without the issuer's key can make is refused."""
        now = int(time.time())
        claims = {"iss": issuer, "aud": CLIENT, "sub": "masuo", "iat": now, "exp": now + 600}
        own = jwk.RSAKey.generate_key(2048)
        with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration", timeout=60) as document:
            uri = json.load(document)["jwks_uri"]
        with urllib.request.urlopen(uri, timeout=60) as document:
            public = jwk.RSAKey.import_key(json.load(document)["keys"][0])
        # The public key as a secret; the library refuses its PEM as one.
        secret = jwk.OctKey.import_key(public.as_dict(private=False)["n"])
        hmac = jws.JWSRegistry(algorithms=["HS256", "none"])
        forged = [
            jwt.encode({"alg": "RS256", "kid": kid}, claims, own),
            jwt.encode({"alg": "RS256", "kid": "other"}, claims, own),
            jwt.encode({"alg": "RS256", "kid": kid, "jwk": own.as_dict(private=False)}, claims, own),
            jws.serialize_compact({"alg": "HS256", "kid": kid}, json.dumps(claims), secret, registry=hmac),
            jws.serialize_compact({"alg": "none", "kid": kid}, json.dumps(claims), secret, registry=hmac),
            token[:-4] + "AAAA",
        ]
        for text in forged:
            with self.assertRaisesRegex(aiorpcx.RPCError, "ID token is refused"):
                await call("auth.signInWithProvider", provider="oidc.mock", idToken=text)


if __name__ == "__main__":
    unittest.main()
