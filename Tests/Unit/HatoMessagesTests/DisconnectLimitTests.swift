import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import HatoTree
import Testing

@testable import HatoMessages

/// What connections may leave to be written is limited: for each of them, for each user and for the service.
@Suite struct DisconnectLimitTests {
    @Test func placesAndBytesOfAConnectionAreLimited() async throws {
        try await RunningMessages.with(change: {
            $0.limits.onDisconnectEntriesMax = 3
            $0.limits.onDisconnectBytesMax = 4_500
            $0.limits.onDisconnectServiceBytesMax = 9_000
        }) { running in
            func reason(_ line: RawLines, _ method: String, _ params: String) async throws -> JSONValue? {
                try await line.response(method, params)["error"]?["data"]?["reason"]
            }
            let line = try await RawLines.connect(running, as: "a")
            #expect(
                try await reason(line, "update", #""path":"/","values":{"a":1,"b":1,"c":1,"d":1}"#)
                    == "too_many_on_disconnect")
            try await line.ask("update", #""path":"/","values":{"a":1,"b":1,"c":1}"#)
            #expect(try await reason(line, "set", #""path":"/d","value":1"#) == "too_many_on_disconnect")
            // A smaller picture may always take the place of a larger one.
            try await line.ask("set", #""path":"/a","value":2"#)
            try await line.ask("cancel", #""path":"/b""#)
            let long = String(repeating: "x", count: 1_700)
            #expect(
                try await reason(line, "set", #""path":"/d","value":"\#(long)\#(long)""#) == "on_disconnect_too_big")
            try await line.ask("set", #""path":"/d","value":"\#(long)""#)
            let other = try await RawLines.connect(running, as: "a")
            #expect(try await reason(other, "set", #""path":"/e","value":"\#(long)""#) == "on_disconnect_full")
            line.end(.closed)
            try await running.waitFor(["a": 2, "c": 1, "d": .string(long)])
            // What has been written is no longer kept.
            try await other.ask("set", #""path":"/e","value":"\#(long)""#)
        }
    }

    /// One user cannot take what the service keeps for all.
    @Test func bytesOfAUserAreLimitedOverItsConnections() async throws {
        try await RunningMessages.with(change: {
            $0.limits.onDisconnectClientBytesMax = 3_000
            $0.limits.onDisconnectServiceBytesMax = 9_000
        }) { running in
            let long = String(repeating: "x", count: 1_700)
            let set = #""path":"/d","value":"\#(long)""#
            let (line, other) = (
                try await RawLines.connect(running, as: "a"), try await RawLines.connect(running, as: "a")
            )
            try await line.ask("set", set)
            let refused = try await other.response("set", set)["error"]?["data"]?["reason"]
            #expect(refused == "on_disconnect_full")
            try await RawLines.connect(running, as: "b").ask("set", set)
            // A cancelled write frees its bytes for the user's other connections, and so does one that is made.
            try await line.ask("cancel", #""path":"/d""#)
            try await other.ask("set", set)
            #expect(try await line.response("set", set)["error"]?["data"]?["reason"] == "on_disconnect_full")
            other.end(.closed)
            try await running.waitFor(["d": .string(long)])
            try await line.ask("set", set)
        }
    }

    @Test func userAtTheLimitLeavesBytesForOthers() async throws {
        try await RunningMessages.with(change: {
            $0.limits.onDisconnectClientBytesMax = 16_000
            $0.limits.onDisconnectServiceBytesMax = 16_000
        }) { running in
            func set(_ number: Int) -> String {
                #""path":"/d\#(number)","value":"\#(String(repeating: "x", count: 1_700))""#
            }
            let line = try await RawLines.connect(running, as: "a")
            var count = 0
            while try await line.response("set", set(count))["error"] == nil, count < 100 { count += 1 }
            #expect(count > 1 && count < 100)
            try await RawLines.connect(running, as: "b").ask("set", set(100))
        }
    }

    /// Otherwise it would be prepared on the event loop, and authorised on the writer's thread.
    @Test func whatIsTooLargeIsRefusedBeforeItIsLookedAt() async throws {
        try await RunningMessages.with(
            rules: DisconnectTests.rules,
            change: {
                $0.limits.onDisconnectBytesMax = 2_000
                $0.limits.updatePathsMax = 3
                $0.limits.writeValuesMax = 9
            }
        ) { running in
            let line = try await RawLines.connect(running, as: "a")
            func reason(_ method: String, _ params: String) async throws -> JSONValue? {
                try await line.response(method, params)["error"]?["data"]?["reason"]
            }
            func values(_ count: Int, _ value: String = "1") -> String {
                "{" + (0..<count).map { #""k\#($0)":\#(value)"# }.joined(separator: ",") + "}"
            }
            // No user may write there, and there is no such server value.
            let wrong = #"{".sv":"later"}"#
            for value in [values(40, wrong), values(40, "{}"), values(1, "[" + values(40) + "]")] {
                #expect(try await reason("set", #""path":"/nowhere","value":\#(value)"#) == "on_disconnect_too_big")
            }
            #expect(
                try await reason("update", #""path":"/nowhere","values":{"k":\#(values(40, wrong))}"#)
                    == "on_disconnect_too_big")
            #expect(
                try await reason("update", #""path":"/nowhere","values":\#(values(4, wrong))"#) == "too_many_paths")
            #expect(try await reason("set", #""path":"/nowhere","value":\#(values(10))"#) == "too_many_values")
            #expect(try await reason("set", #""path":"/public","value":\#(values(9))"#) == nil)
        }
    }
}
