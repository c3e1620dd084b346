import HatoModel
import HatoRules
import Testing

/// Tables of cases: their evaluation, their failures, and the rules they do not cover.
@Suite struct RulesCasesTests {
    static let rules = """
        {"rules": {
          "open": {".read": true},
          "n": {".write": "auth.uid == 'masuo'", ".validate": "newData.val() == data.val() + 1"},
          "log": {"$key": {".write": "auth.token.admin === true", "at": {".validate": "newData.val() == now"}}},
          "never": {".read": "query.limitToFirst == 1"}
        }}
        """

    static func cases(_ cases: JSONValue) throws -> RulesCases {
        try RulesCases(
            json: [
                "data": ["n": 5], "now": 1000,
                "users": ["admin": ["uid": "sazae", "token": ["admin": true]], "masuo": ["uid": "masuo"]],
                "cases": cases,
            ], unknown: .rejected)
    }

    @Test func verdictsAreComparedAndRulesCounted() throws {
        let cases = try Self.cases([
            ["operation": "get", "path": "/open/x", "allowed": true],
            ["operation": "set", "path": "/n", "value": 6, "as": "masuo", "allowed": true],
            ["operation": "set", "path": "/n", "value": [".sv": ["increment": 1]], "as": "masuo", "allowed": true],
            ["name": "nobody counts", "operation": "set", "path": "/n", "value": 6, "allowed": true],
            ["operation": "set", "path": "/n", "value": 1, "as": "masuo", "data": ["n": 0], "allowed": true],
            [
                "operation": "push", "path": "/log", "value": ["at": [".sv": "timestamp"]], "as": "admin",
                "allowed": true,
            ],
            [
                "operation": "update", "path": "/", "value": ["log/a/at": 1000, "n": nil], "as": ["uid": "x"],
                "allowed": false,
            ],
            ["operation": "remove", "path": "/n", "as": "masuo", "allowed": true],
        ])
        let report = try cases.run(over: Rules.compile(Self.rules))
        #expect(report.count == 8)
        #expect(report.failures.map(\.name) == ["nobody counts"] && report.failures.first?.index == 3)
        #expect(report.failures.first?.trace.first?.failed?.text == "auth.uid == 'masuo'")
        let entries = report.coverage.entries
        #expect(entries.map(\.rule.pattern) == ["/open", "/n", "/n", "/log/$key", "/log/$key/at", "/never"])
        #expect(entries.map(\.trueCount) == [1, 4, 3, 1, 1, 0])
        #expect(entries.map(\.falseCount) == [0, 1, 0, 1, 0, 0])
        #expect(entries.map(\.isReached) == [true, true, true, true, true, false])
        #expect(entries[1].line == 3 && entries[1].column == 20)
    }

    @Test(
        arguments: [
            (["operation": "update", "path": "/", "value": ["x": 1, "x/y": 2], "allowed": true], "conflicting_paths"),
            (["operation": "update", "path": "/n/.priority", "value": ["x": 1], "allowed": true], "invalid_path"),
            (["operation": "push", "path": "/n/.priority", "value": 1, "allowed": true], "invalid_path"),
        ] as [(JSONValue, String)])
    func operationsThatTheServiceRefusesAreNoCases(_ row: JSONValue, _ reason: String) throws {
        let cases = try Self.cases([row])
        let error = #expect(throws: ArgumentError.self) { try cases.run(over: Rules.compile(Self.rules)) }
        #expect(error?.reason == reason)
        #expect(error?.message.hasPrefix("Case 1 ") == true)
    }

    @Test func defaultQueryIsAPlainRead() throws {
        let rules = try Rules.compile(#"{"rules": {".read": "query.orderByPriority == false"}}"#)
        let cases = try Self.cases([["operation": "listen", "path": "/", "query": [:], "allowed": true]])
        #expect(try cases.run(over: rules).failures.isEmpty)
    }

    @Test func queriesAreEvaluated() throws {
        let cases = try Self.cases([
            ["operation": "get", "path": "/never", "query": ["orderBy": "$key", "limitToFirst": 1], "allowed": true],
            [
                "operation": "listen", "path": "/never", "query": ["orderBy": "$key", "limitToFirst": 2],
                "allowed": false,
            ],
        ])
        #expect(try cases.run(over: Rules.compile(Self.rules)).failures.isEmpty)
    }

    @Test(
        arguments: [
            ["operation": "get", "path": "/", "as": "nobody-known", "allowed": true],
            ["operation": "get", "path": "/", "as": 5, "allowed": true],
            ["operation": "update", "path": "/", "value": 5, "allowed": true],
            ["operation": "set", "path": "/", "value": ["a/b": 1], "allowed": true],
        ] as [JSONValue])
    func wrongCasesAreNamed(row: JSONValue) throws {
        let cases = try Self.cases([["operation": "get", "path": "/open", "allowed": true], row])
        let error = #expect(throws: ArgumentError.self) { try cases.run(over: Rules.compile(Self.rules)) }
        #expect(error?.message.hasPrefix("Case 2") == true)
    }
}
