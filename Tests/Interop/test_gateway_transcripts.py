"""The library `websockets` plays the same conversations with the gateway as our own client does."""

import asyncio
import json
import os
import unittest

from gateway_stack import GatewayStack
from transcript_player import Player

FOLDER = os.path.join(os.path.dirname(__file__), "../Integration/Gateway/Transcripts")


class TranscriptsTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)

    async def test_every_transcript(self):
        names = sorted(os.listdir(FOLDER))
        self.assertGreater(len(names), 3)
        for name in names:
            with self.subTest(name), open(os.path.join(FOLDER, name), encoding="utf-8") as file:
                transcript = json.load(file)
                with GatewayStack(transcript["rules"]) as stack:
                    await Player(stack).play(transcript)


if __name__ == "__main__":
    unittest.main()
