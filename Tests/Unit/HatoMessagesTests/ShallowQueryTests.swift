import HatoModel
import HatoRPC
import Testing

@testable import HatoMessages

/// Queries for the names of children, without what is below them.
@Suite struct ShallowQueryTests {
    private static let list: JSONValue = [
        "b": ["n": 1, "deep": ["x": "y"]], "a": ["n": 2], "10": 5, "9": ["n": 3, ".priority": "p"], "c": "leaf",
    ]

    @Test func keysOfTheSelectedChildrenComeInTheOrderOfTheQuery() async throws {
        let rules = #"{"rules": {"list": {".indexOn": ["n", ".value"]}}}"#
        try await RunningMessages.with(rules: rules) { running in
            let client = running.administrator
            _ = try await client.call(Messages.Set(path: "/list", value: Self.list))
            func check(_ query: JSONValue, at path: String = "/list", _ keys: [String]) async throws {
                let result = try await client.call(
                    method: "messages.get", params: ["path": .string(path), "query": query, "shallow": true])
                #expect(result["value"]?.object?.members.map(\.name) == keys, "\(query)")
                #expect(result["value"]?.object?.members.allSatisfy { $0.value == true } == true, "\(query)")
                #expect(result["keys"] == .array(keys.map { .string($0) }), "\(query)")
            }
            try await check(["orderBy": "$key"], ["9", "10", "a", "b", "c"])
            try await check(["orderBy": "$key", "limitToFirst": 3], ["9", "10", "a"])
            try await check(["orderBy": "$key", "limitToLast": 2], ["b", "c"])
            try await check(["orderBy": "$key", "startAfter": "10", "limitToFirst": 2], ["a", "b"])
            try await check(["orderBy": "$key", "startAt": "d"], [])
            try await check(["orderBy": "n", "startAt": 1], ["b", "a", "9"])
            try await check(["orderBy": "n", "limitToFirst": 3], ["10", "c", "b"])
            try await check(["orderBy": "n", "limitToLast": 1], ["9"])
            try await check(["orderBy": "$value", "endAt": "z"], ["10", "c"])
            try await check(["orderBy": "$priority", "limitToLast": 2], ["c", "9"])
            try await check([:], ["10", "a", "b", "c", "9"])
            try await check(["orderBy": "$key"], at: "/list/c", [])
            try await check(["orderBy": "$key"], at: "/none", [])
            // `{}` is the node itself.
            let leaf = try await client.call(
                method: "messages.get", params: ["path": "/list/c", "query": [:], "shallow": true])
            #expect(leaf["value"] == "leaf" && leaf["keys"] == nil)
        }
    }
}
