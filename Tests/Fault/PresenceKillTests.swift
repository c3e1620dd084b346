import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `kill -9` of the service ends its connections too: the next start makes their onDisconnect writes before the first
/// response.
@Suite("onDisconnect writes after a kill", .serialized, .timeLimit(.minutes(10)))
struct PresenceKillTests {
    @Test(arguments: FaultStack.Layout.allCases) func presenceIsOfflineAfterAKill(layout: FaultStack.Layout)
        async throws
    {
        try await FaultStack.run(layout) { stack in
            let path: JSONValue = "/users/masuo/status"
            for round in 1...max(1, FaultSettings.kills) {
                let client = stack.client(.messages)
                for number in 0..<20 {
                    _ = try await client.call(
                        method: "messages.set", params: ["path": .string("/online/\(number)"), "value": true])
                    _ = try await client.call(
                        method: "messages.onDisconnect.remove", params: ["path": .string("/online/\(number)")])
                }
                _ = try await client.call(
                    method: "messages.onDisconnect.set",
                    params: ["path": path, "value": ["state": "offline", "since": [".sv": "timestamp"]]])
                _ = try await client.call(
                    method: "messages.set",
                    params: ["path": path, "value": ["state": "online", "round": .number(Double(round))]])
                try await stack.killAndRestart(layout == .together ? .everything : .messages)
                // The first response of the new process: the test waits for nothing.
                let after = stack.client(.messages)
                let status = try await after.call(method: "messages.get", params: ["path": path])["value"]
                #expect(status?["state"] == "offline")
                #expect(status?["round"] == nil)
                let online = try await after.call(method: "messages.get", params: ["path": "/online"])["value"]
                #expect(online == .null)
                await after.close()
                await client.close()
            }
        }
    }
}
