import HatoModel
import HatoRules
import Testing

/// `val()` of a node that has children (spec §9.4): unequal to null and to every primitive, an error everywhere else.
@Suite struct RulesSentinelTests {
    private static let asking = Asking(
        auth: .user("masuo", ["roles": ["cook"]]),
        data: ["x": ["y": ["name": "Masuo", "deep": ["a": 1]]], "o": ["k": 1], "p": [".priority": 3, "a": 1], "n": 5])

    @Test(arguments: [
        "data.val() != null", "!(data.val() == null)", "null !== data.val()", "!(null === data.val())",
        "root.child('o').val() != null", "root.child('p').val() != null", "root.val() != null",
        "data.child('deep').val() != null", "data.parent().val() != null", "newData.val() != null",
        "newData.child('in').val() != null", "newData.parent().parent().child('o').val() != null",
        "data.val() != true", "data.val() != false", "data.val() != 0", "data.val() != ''", "data.val() != 'x'",
        "data.val() != auth", "data.val() != auth.token", "data.val() != auth.token.roles", "data.val() != now",
        "data.val() == data.val()", "data.val() === newData.val()", "!(data.val() != root.val())",
        "(true ? data.val() : null) != null", "(data.exists() ? data.val() : 'x') != 'x'",
        // Null for a missing node; the value of a primitive.
        "data.child('no').val() == null", "data.child('name/no').val() == null", "root.child('a.b').val() == null",
        "data.child('name').val() == 'Masuo'", "newData.child('out').val() == null", "newData.child('in/k').val() == 1",
        "data.child('deep').child('a').val() != data.child('deep').val()",
        // The other methods of snapshots return the same as before.
        "data.exists() && data.hasChildren() && !data.isString() && !data.isNumber() && !data.isBoolean()",
        "root.child('p').getPriority() == 3",
    ])
    func isNeitherNullNorAPrimitive(expression: String) throws {
        #expect(try Self.asking.outcome(of: expression, writing: ["in": ["k": 1]]) == .true, "\(expression)")
    }

    @Test(arguments: [
        "data.val() == null", "null == data.val()", "newData.val() === null", "data.val() == 'x'", "data.val() == 0",
        "newData.child('in').val() == null", "root.val() == null", "data.val() == auth.token.roles",
    ])
    func equalsNothingElse(expression: String) throws {
        #expect(try Self.asking.outcome(of: expression, writing: ["in": ["k": 1]]) == .false, "\(expression)")
    }

    @Test(arguments: [
        ("data.val() + 'a' != 'b'", "added"), ("'a' + data.val() != 'b'", "added"), ("data.val() + 1 != 2", "added"),
        ("data.val() + data.val() != 'b'", "added"), ("data.val() - 1 != 2", "number"),
        ("2 * data.val() != 2", "number"),
        ("data.val() / 2 != 2", "number"), ("data.val() % 2 != 2", "number"), ("-data.val() != 2", "number"),
        ("data.val() < 1", "order"), ("'a' <= data.val()", "order"), ("data.val() > data.val()", "order"),
        ("data.val() >= 'a'", "order"), ("data.val().length != 1", "method"), ("data.val().contains('a')", "method"),
        ("data.val().beginsWith('a')", "method"), ("data.val().endsWith('a')", "method"),
        ("data.val().replace('a', 'b') != 'c'", "method"), ("data.val().toLowerCase() != 'c'", "method"),
        ("data.val().toUpperCase() != 'c'", "method"), ("data.val().matches(/a/)", "method"),
        ("'a'.contains(data.val())", "argument"), ("'a'.beginsWith(data.val())", "argument"),
        ("'a'.endsWith(data.val())", "argument"), ("'a'.replace(data.val(), 'b') != 'c'", "argument"),
        ("'a'.replace('b', data.val()) != 'c'", "argument"), ("root.child(data.val()).exists()", "argument"),
        ("root.hasChild(data.val())", "argument"), ("root.hasChildren([data.val()])", "argument"),
        ("auth.token[data.val()] != 1", "argument"), ("auth.token[newData.val()] == null", "argument"),
        ("!(data.val() < 1) || true", "order"),
    ])
    func isAnErrorEverywhereElse(expression: String, reason: String) throws {
        guard case .error(let message) = try Self.asking.outcome(of: expression, writing: ["in": 1]) else {
            Issue.record("\(expression) did not go wrong")
            return
        }
        #expect(message.contains(reason), "\(expression): \(message)")
    }

    /// Expressions that allowed objects to be overwritten and written.
    @Test func comparisonWithNullDoesNotLetObjectsThrough() throws {
        let rules = try Rules.compile(
            """
            {"rules": {"once": {".write": "data.val() == null"}, "gone": {".write": "newData.val() == null"},
             "v": {".write": true, "$k": {".validate": "newData.val() == null"}},
             "r": {".read": "data.val() == null"}}}
            """)
        let asking = Asking(data: ["once": ["a": 1], "gone": ["a": 1], "r": ["a": 1]])
        #expect(try !asking.mayWrite(rules, "/once", 1))
        #expect(try !asking.mayWrite(rules, "/once", ["b": 1]))
        #expect(try Asking().mayWrite(rules, "/once", ["b": 1]))
        #expect(try !asking.mayWrite(rules, "/gone", ["b": 1]))
        #expect(try !asking.mayWrite(rules, "/gone/b", 1))
        #expect(try asking.mayWrite(rules, "/gone", .null))
        #expect(try asking.mayWrite(rules, "/gone/a", .null))
        #expect(try !asking.mayWrite(rules, "/v", ["k": ["deep": 1]]))
        #expect(try !asking.mayRead(rules, "/r"))
        #expect(try Asking().mayRead(rules, "/r"))
    }

    /// The read is recorded once, as the value, which includes whether there are children.
    @Test func readOfTheValueIsRecorded() throws {
        let rules = try Rules.compile(#"{"rules": {".read": "root.child('o').val() != null"}}"#)
        for data: JSONValue in [["o": ["a": 1]], ["o": 1], ["x": 1]] {
            let situation = RulesContext(auth: .nobody, now: 0, before: try TreeNode(json: data))
            var recording = RulesRecording(reads: true)
            _ = try rules.authoriseRead(.root, situation, recording: &recording)
            #expect(recording.reads?.reads == [RulesRead(path: try TreePath("/o"), aspect: .value)], "\(data)")
        }
    }

    @Test func tablesOfCasesSeeIt() throws {
        let cases = try RulesCasesTests.cases([
            ["operation": "set", "path": "/o", "value": 1, "data": ["o": ["a": 1]], "allowed": false],
            ["operation": "set", "path": "/o", "value": 1, "data": nil, "allowed": true],
        ])
        let report = try cases.run(
            over: Rules.compile(#"{"rules": {"o": {".write": "data.val() == null"}}}"#))
        #expect(report.failures.isEmpty)
        #expect(report.coverage.entries.map(\.isCovered) == [true])
    }
}
