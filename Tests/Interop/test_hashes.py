"""bcrypt, argon2-cffi and cryptography make the hashes of passwords; auth.users.import takes them, and their passwords
sign in."""

import base64
import os
import unittest

import aiorpcx
import argon2
import bcrypt
from argon2.low_level import Type
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from stack import Stack

PASSWORD = "サザエさん's password"
# 71 bytes: bcrypt reads 72 and no more.
LONG_PASSWORD = "鳩" * 23 + "ok"
ROUNDS = 1000
N, R, P = 4096, 8, 2


def bcrypted(password, prefix=b"2b"):
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4, prefix)).decode()


def argon(kind, password=PASSWORD):
    return argon2.PasswordHasher(time_cost=2, memory_cost=1024, parallelism=2, type=kind).hash(password)


def encoded(data):
    return base64.b64encode(data).decode()


def derived(function, password=PASSWORD):
    """Hash and salt, as the members of a row."""
    salt = os.urandom(16)
    return {"passwordHash": encoded(function(salt).derive(password.encode())), "salt": encoded(salt)}


def pbkdf2(algorithm, length):
    return derived(lambda salt: PBKDF2HMAC(algorithm, length, salt, ROUNDS))


def scrypt(length):
    return derived(lambda salt: Scrypt(salt, length, N, R, P))


class HashesTest(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = Stack().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.stack.__exit__()

    async def asyncSetUp(self):
        self.session = await self.enterAsyncContext(aiorpcx.connect_rs(*self.stack.address("auth")))

    async def call(self, method, **params):
        return await self.session.send_request(method, params)

    async def put(self, rows, **how):
        """Imports rows; each uid is the local part of its e-mail address."""
        users = [{"uid": uid, "email": f"{uid}@example.com", **members} for uid, members in rows.items()]
        return await self.call("auth.users.import", auth=self.stack.admin_key, users=users, **how)

    async def stored(self, uid):
        page = await self.call("auth.users.export", auth=self.stack.admin_key)
        return next(row for row in page["users"] if row["uid"] == uid)["passwordHash"]

    async def check(self, rows, password=PASSWORD, **how):
        result = await self.put(rows, **how)
        self.assertEqual(result, {"imported": len(rows), "errors": []})
        for uid in rows:
            with self.subTest(uid):
                imported = await self.stored(uid)
                for wrong in (password + "!", password[:-1], password.swapcase() if password.isascii() else "a"):
                    with self.assertRaisesRegex(aiorpcx.RPCError, "no account with this name and password"):
                        await self.call("auth.signIn", email=f"{uid}@example.com", password=wrong)
                self.assertEqual(await self.stored(uid), imported)
                user = await self.call("auth.signIn", email=f"{uid}@example.com", password=password)
                self.assertEqual(user["uid"], uid)
                # It has been replaced by one of this service, which the same password matches.
                self.assertTrue((await self.stored(uid)).startswith("$scrypt$"))
                again = await self.call("auth.signIn", email=f"{uid}@example.com", password=password)
                self.assertEqual(again["uid"], uid)

    async def test_hashes_of_bcrypt(self):
        await self.check({
            "bcrypt-2a": {"passwordHash": bcrypted(PASSWORD, b"2a")},
            "bcrypt-2b": {"passwordHash": bcrypted(PASSWORD)},
            "bcrypt-2y": {"passwordHash": bcrypted(PASSWORD).replace("$2b$", "$2y$")},
        })
        await self.check({"bcrypt-long": {"passwordHash": bcrypted(LONG_PASSWORD)}}, LONG_PASSWORD)
        # Firebase's rows have the text in base64.
        await self.check(
            {"bcrypt-encoded": {"passwordHash": encoded(bcrypted(PASSWORD).encode())}}, hashAlgorithm="BCRYPT")

    async def test_hashes_of_argon2(self):
        await self.check({
            "argon2id": {"passwordHash": argon(Type.ID)}, "argon2i": {"passwordHash": argon(Type.I)},
        })

    async def test_hashes_of_scrypt(self):
        how = {"cpuMemCost": N, "blockSize": R, "parallelization": P}
        await self.check({"scrypt-64": scrypt(64)}, hashAlgorithm="STANDARD_SCRYPT", dkLen=64, **how)
        await self.check({"scrypt-32": scrypt(32)}, hashAlgorithm="STANDARD_SCRYPT", **how)

    async def test_hashes_of_pbkdf2(self):
        for name, algorithm, length in (
            ("PBKDF_SHA1", hashes.SHA1(), 20), ("PBKDF2_SHA256", hashes.SHA256(), 32),
            ("PBKDF2_SHA512", hashes.SHA512(), 64),
        ):
            uid = name.lower().replace("_", "-")
            await self.check({uid: pbkdf2(algorithm, length)}, hashAlgorithm=name, rounds=ROUNDS)

    async def test_hashes_that_cost_too_much_are_refused_by_their_rows(self):
        costly = bcrypted(PASSWORD).replace("$04$", "$31$")
        # 4 GiB.
        large = argon(Type.ID).replace("m=1024", f"m={4 << 20}")
        result = await self.put({
            "cheap": {"passwordHash": bcrypted(PASSWORD)}, "costly": {"passwordHash": costly},
            "large": {"passwordHash": large}, "argon2d": {"passwordHash": argon(Type.D)},
        })
        self.assertEqual(result["imported"], 1)
        refused = [(error["index"], error["uid"], error["parameter"], error["reason"]) for error in result["errors"]]
        self.assertEqual(refused, [
            (index, uid, "passwordHash", "INVALID_PASSWORD_HASH")
            for index, uid in ((1, "costly"), (2, "large"), (3, "argon2d"))
        ])
        for uid in ("costly", "large", "argon2d"):
            with self.assertRaises(aiorpcx.RPCError):
                await self.call("auth.signIn", email=f"{uid}@example.com", password=PASSWORD)
        user = await self.call("auth.signIn", email="cheap@example.com", password=PASSWORD)
        self.assertEqual(user["uid"], "cheap")


if __name__ == "__main__":
    unittest.main()
