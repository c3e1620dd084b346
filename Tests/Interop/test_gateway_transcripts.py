"""The libraries `websockets` and `httpx` play the same conversations with the gateway as our own clients do."""

import asyncio
import json
import os
import unittest

from gateway_stack import GatewayStack
from transcript_player import Player, PollingPlayer

FOLDER = os.path.join(os.path.dirname(__file__), "../Integration/Gateway/Transcripts")


class TranscriptsTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)

    def transcripts(self):
        for name in sorted(os.listdir(FOLDER)):
            with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
                yield name, json.load(file)

    async def test_every_transcript(self):
        transcripts = list(self.transcripts())
        self.assertGreater(len(transcripts), 3)
        for name, transcript in transcripts:
            with self.subTest(name), GatewayStack(transcript["rules"]) as stack:
                await Player(stack).play(transcript)

    async def test_polls(self):
        transcripts = [(name, transcript) for name, transcript in self.transcripts() if PollingPlayer.plays(transcript)]
        self.assertGreater(len(transcripts), 10)
        for name, transcript in transcripts:
            for switches in False, True:
                # A session whose client is gone ends soon.
                gateway = ["--poll-idle-ms-max", "20000"]
                with self.subTest(name, switches=switches), GatewayStack(transcript["rules"], gateway) as stack:
                    await PollingPlayer(stack, switches).play(transcript)


if __name__ == "__main__":
    unittest.main()
