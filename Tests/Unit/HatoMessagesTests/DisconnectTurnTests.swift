import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoMessages

/// How long the turns of what connections leave are.
@Suite struct DisconnectTurnTests {
    /// All others wait for the turn of a write.
    @Test func placesOfManyRowsAreWrittenInSeveralTurns() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let node = JSONValue.object(
                JSONObject(uniqueMembers: (0..<1_000).map { JSONObject.Member("c\($0)", .string("\($0)")) }))
            let line = try await RawLines.connect(running, as: "a")
            for number in 0..<24 {
                let path = try TreePath("/p/k\(number)")
                _ = try await client.call(Messages.Set(path: path, value: node))
                try await line.ask("remove", #""path":"\#(path)""#)
            }
            let before = running.store.version
            try await line.ask("set", #""path":"/end","value":1"#)
            line.end(.closed)
            try await running.waitFor(["end": 1])
            #expect(running.store.version > before + 2, "what was left last, and all in one turn")
        }
    }

    /// The work of rules counts, too, and splits the turn; no write is refused for it.
    @Test func placesWhoseRulesTakeLongAreWrittenInSeveralTurns() async throws {
        try await RunningMessages.with { running in
            let client = running.administrator
            let text = String(repeating: "a", count: 400_000)
            _ = try await client.call(Messages.Set(path: try TreePath("/text"), value: .string(text)))
            _ = try await client.call(
                Messages.Rules.Set(
                    rules: #"""
                        {"rules": {".read": true, "p": {"$k": {
                            ".write": "root.child('text').val().toLowerCase().contains('b') == false"}}}}
                        """#))
            let line = try await RawLines.connect(running, as: "a")
            for number in 0..<16 { try await line.ask("set", #""path":"/p/k\#(number)","value":1"#) }
            let before = running.store.version
            line.end(.closed)
            let written = JSONObject(uniqueMembers: (0..<16).map { JSONObject.Member("k\($0)", 1) })
            try await running.waitFor(["p": .object(written), "text": .string(text)])
            #expect(running.store.version > before + 2, "all in one turn")
        }
    }
}
