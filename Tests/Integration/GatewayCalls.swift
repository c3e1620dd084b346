import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// What messages has for a gateway (protocol §2, §5), in the built program.
@Suite(.timeLimit(.minutes(10)))
struct GatewayCalls {
    private static let administrator = JSONValue.string(ServingProgram.administratorKey)

    private static func with(_ body: (String) throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let messages = try await ServingProgram(
            "hato-messages", ["--data", "\(folder.path)/data", "--auth", "127.0.0.1:1", "--event-rows-max", "1"],
            in: folder)
        try body(messages.address)
        await messages.stop()
    }

    /// The next response; events before it are handed over.
    private static func response(
        _ socket: PlainSocket, _ method: String, _ params: JSONObject, _ event: (JSONValue) -> Void = { _ in }
    ) throws -> JSONValue {
        try socket.send(method, params)
        while true {
            let line = try JSONParser.parse(socket.line())
            if line["id"] != nil { return line }
            event(line["params"] ?? .null)
        }
    }

    /// As official clients run transactions: they compare with what their listener has shown, and try again at once.
    @Test func transactionsBesideAnotherWriterTakeOneMoreRoundTrip() async throws {
        try await Self.with { address in
            let (client, writer) = (try PlainSocket(address), try PlainSocket(address))
            for socket in [client, writer] { try socket.call("session.authenticate", ["auth": Self.administrator]) }
            try writer.call("messages.set", ["path": "/a/n", "value": 0])
            var version = 0.0
            func note(_ event: JSONValue) { version = event["version"]?.number ?? version }
            let listening: JSONObject = ["path": "/a", "query": ["orderBy": "$key", "limitToLast": 2]]
            version = try Self.response(client, "messages.listen", listening)["result"]?["version"]?.number ?? 0
            var trips = 0
            for round in 1...25 {
                try writer.call("messages.set", ["path": "/a/n", "value": .number(Double(round))])
                while true {
                    trips += 1
                    let set: JSONObject = [
                        "path": "/a/n", "value": .number(Double(-round)), "ifVersion": .number(version),
                    ]
                    let response = try Self.response(client, "messages.set", set, note)
                    if response["error"] == nil { break }
                    #expect(response["error"]?["data"]?["reason"] == "version_mismatch")
                    guard trips <= 50 else { break }
                }
            }
            #expect(trips <= 50, "two round trips for each")
            for socket in [client, writer] { socket.end() }
        }
    }

    @Test func rulesSeeTheVariableOfAnAdministratorAlsoAtTheEndOfItsConnection() async throws {
        try await Self.with { address in
            let administrator = try PlainSocket(address)
            try administrator.call("session.authenticate", ["auth": Self.administrator])
            let rules = #"{"rules": {"guests": {".write": "auth.role === 'guest'"}}}"#
            try administrator.call("messages.rules.set", ["rules": .string(rules)])
            let socket = try PlainSocket(address)
            let guest: JSONValue = ["variable": ["role": "guest"]]
            let set: JSONObject = ["auth": Self.administrator, "path": "/guests/a", "value": 1]
            func with(_ variable: JSONValue, _ params: JSONObject) -> JSONObject {
                var params = params
                params["as"] = variable
                return params
            }
            try socket.call("messages.set", with(guest, set))
            let refused = try Self.response(socket, "messages.set", with(["variable": ["role": "member"]], set))
            #expect(refused["error"]?["code"] == -32002)
            let offline: JSONObject = ["auth": Self.administrator, "path": "/guests/gone", "value": true]
            try socket.call("messages.onDisconnect.set", with(guest, offline))
            socket.end()
            let deadline = ContinuousClock.now + .seconds(120)
            while true {
                let value = try Self.response(administrator, "messages.get", ["path": "/guests"])["result"]?["value"]
                if value == ["a": 1, "gone": true] { break }
                guard ContinuousClock.now < deadline else { throw DeadlineExceeded("the write is made") }
            }
            administrator.end()
        }
    }

    @Test func writesShowTheirEtagAndWhatTheyHaveWritten() async throws {
        try await Self.with { address in
            let socket = try PlainSocket(address)
            try socket.call("session.authenticate", ["auth": Self.administrator])
            let value: JSONValue = [
                "at": [".sv": "timestamp"], "n": [".sv": ["increment": 2]], "list": ["a", nil, "b"],
            ]
            func written(_ method: String, _ params: JSONObject) throws -> JSONValue {
                try Self.response(socket, method, params)["result"] ?? .null
            }
            let set = try written("messages.set", ["path": "/a", "value": value, "etag": true, "echo": true])
            let get = try written("messages.get", ["path": "/a", "etag": true])
            #expect(set["etag"]?.string != nil && set["etag"] == get["etag"])
            #expect(set["value"] == get["value"] && set["value"]?["n"] == 2 && set["value"]?["at"]?.number != nil)
            let push = try written("messages.push", ["path": "/b", "value": ["x": 1], "etag": true, "echo": true])
            let path = JSONValue.string("/b/\(push["key"]?.string ?? "")")
            #expect(try written("messages.get", ["path": path, "etag": true])["etag"] == push["etag"])
            #expect(push["value"] == ["x": 1])
            let values: JSONValue = ["n": [".sv": ["increment": 1]], "list": nil, "c/d": true]
            let update = try written("messages.update", ["path": "/a", "values": values, "echo": true])
            #expect(update["values"] == ["n": 3, "list": nil, "c/d": true])
            socket.end()
        }
    }

    @Test func rulesAreReadAsJSON() async throws {
        try await Self.with { address in
            let socket = try PlainSocket(address)
            try socket.call("session.authenticate", ["auth": Self.administrator])
            let rules: JSONValue = "// Open.\n{\"rules\": {\".read\": \"true\", /* all */ \".write\": false,},}"
            try socket.call("messages.rules.set", ["rules": rules])
            let plain = try Self.response(socket, "messages.rules.get", [:])
            #expect(plain["result"]?["rules"] == rules)
            let strict = try Self.response(socket, "messages.rules.get", ["strict": true])
            #expect(strict["result"]?["rules"] == #"{"rules":{".read":"true",".write":false}}"#)
            socket.end()
        }
    }
}
