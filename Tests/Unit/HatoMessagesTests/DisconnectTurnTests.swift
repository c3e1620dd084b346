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
}
