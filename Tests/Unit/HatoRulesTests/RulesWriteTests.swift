import HatoModel
import HatoRules
import Testing

/// Write access: grants cascade, validation does not (spec §9.2).
@Suite struct RulesWriteTests {
    static func rules(_ text: String) throws -> Rules { try Rules.compile("{\"rules\": \(text)}") }

    struct Case: Sendable {
        var rules: String
        var data: JSONValue
        var path: String
        var value: JSONValue
        var isAllowed: Bool

        init(_ rules: String, _ data: JSONValue, _ path: String, _ value: JSONValue, _ isAllowed: Bool) {
            self.rules = rules
            self.data = data
            self.path = path
            self.value = value
            self.isAllowed = isAllowed
        }
    }

    static let needsX = #"{"p": {".write": true, ".validate": "newData.hasChildren(['x'])"}}"#
    static let typed = """
        {".write": true, "m": {"$id": {".validate": "newData.hasChildren(['text'])",
          "text": {".validate": "newData.isString()"}, "$other": {".validate": false}}}}
        """

    @Test(arguments: [
        // Ancestors are validated in their state after the write.
        Case(needsX, nil, "/p/y", 1, false),
        Case(needsX, ["p": ["x": 1]], "/p/y", 1, true),
        Case(needsX, ["p": ["x": 1]], "/p/x", nil, true),
        Case(needsX, ["p": ["x": 1, "y": 1]], "/p/x", nil, false),
        Case(needsX, ["p": ["y": 1]], "/p", nil, true),
        Case(needsX, ["p": ["y": 1]], "/p", ["x": 2], true),
        Case(needsX, nil, "/p/y", nil, true),
        // Every written node is validated.
        Case(typed, nil, "/m/1", ["text": "a"], true),
        Case(typed, nil, "/m/1", ["text": 5], false),
        Case(typed, nil, "/m/1", ["text": "a", "more": 1], false),
        Case(typed, nil, "/m", ["1": ["text": "a"], "2": ["text": "b"]], true),
        Case(typed, nil, "/m", ["1": ["text": "a"], "2": ["no": "b"]], false),
        Case(typed, nil, "/", ["m": ["1": ["text": 1]]], false),
        Case(typed, nil, "/elsewhere", ["text": 1], true),
        // Siblings that the write does not contain are not validated; a rewritten value is.
        Case(typed, ["m": ["1": ["text": 5]]], "/m/2", ["text": "a"], true),
        Case(typed, ["m": ["1": ["text": 5]]], "/m/1/text", 5, false),
        Case(typed, ["m": ["1": ["text": "a", "more": 1]]], "/m/1/text", "b", true),
        // A removed node is not validated.
        Case(typed, ["m": ["1": ["text": "a"]]], "/m/1", nil, true),
        Case(typed, ["m": ["1": ["text": "a", "more": 1]]], "/m/1/more", nil, true),
        Case(typed, ["m": ["1": ["text": "a", "more": 1]]], "/m/1/text", nil, false),
        // A validation grants nothing, and a grant below one does not take it back.
        Case(#"{"a": {".validate": true}}"#, nil, "/a", 1, false),
        Case(#"{".write": true, ".validate": false}"#, nil, "/a/b", 1, false),
        Case(#"{".write": true, ".validate": false}"#, ["a": ["b": 1]], "/a/b", nil, true),
        Case(#"{".write": true, "a": {".write": false}}"#, nil, "/a", 1, true),
        Case(#"{"a": {".write": true}}"#, nil, "/", ["a": 1], false),
        // A literal key hides the wildcard beside it, including its validation, at any level.
        Case(#"{".write": true, "$x": {".validate": false}, "a": {}}"#, nil, "/a", 1, true),
        Case(#"{".write": true, "a": {"b": {}}, "$x": {"c": {".validate": false}}}"#, nil, "/a/c", 1, true),
        Case(#"{".write": true, "a": {"b": {}}, "$x": {"c": {".validate": false}}}"#, nil, "/z/c", 1, false),
        Case(#"{"$x": {".write": true}, "a": {"b": {}}}"#, nil, "/a/c", 1, false),
        // A failure in a rule makes that rule false, and the others are evaluated.
        Case(#"{".write": "auth.uid.length > 1", "a": {".write": true}}"#, nil, "/a", 1, true),
        Case(#"{".write": true, "a": {".validate": "newData.val().length < 9"}}"#, nil, "/a", 5, false),
        Case(
            #"{".write": true, "a": {".validate": "newData.isString() && newData.val().length < 9"}}"#, nil, "/a", 5,
            false),
        // `data` and `newData` are those of the rule's own node.
        Case(#"{"$a": {".write": "!data.exists()"}}"#, ["a": ["b": 1]], "/a/c", 1, false),
        Case(#"{"$a": {".write": "!data.exists()"}}"#, ["a": ["b": 1]], "/z/c", 1, true),
        Case(
            #"{"a": {".write": "newData.child('n').val() == data.child('n').val() + 1"}}"#, ["a": ["n": 1]], "/a/n", 2,
            true),
        Case(
            #"{"a": {".write": "newData.child('n').val() == data.child('n').val() + 1"}}"#, ["a": ["n": 1]], "/a/n", 3,
            false),
        // Priorities.
        Case(#"{"a": {".write": "newData.getPriority() == 3"}}"#, nil, "/a", [".value": 1, ".priority": 3], true),
        Case(#"{"a": {".write": "newData.getPriority() == 3"}}"#, ["a": 1], "/a/.priority", 3, true),
        Case(#"{"a": {".write": "newData.getPriority() == 3"}}"#, ["a": 1], "/a/.priority", 4, false),
        Case(#"{"a": {".write": true, ".validate": "newData.val() == 1"}}"#, ["a": 1], "/a/.priority", 4, true),
        Case(#"{"a": {".write": true, ".validate": "newData.val() == 2"}}"#, ["a": 1], "/a/.priority", 4, false),
    ])
    func writeIsAuthorised(row: Case) throws {
        let allowed = try Asking(data: row.data).mayWrite(Self.rules(row.rules), row.path, row.value)
        #expect(allowed == row.isAllowed, "\(row)")
    }

    @Test func everyPathOfAnUpdateSeesAllOfThem() throws {
        let rules = try Self.rules(
            """
            {"a": {".write": "newData.parent().child('b').val() == 2"},
             "b": {".write": "newData.parent().child('a').val() == 1 && !root.child('a').exists()"}}
            """)
        #expect(try Asking().authorise(rules, [("/a", 1), ("/b", 2)]) == .allowed)
        #expect(
            try Asking().authorise(rules, [("/a", 1), ("/b", 3)]) == .denied(RulesDenial(path: try TreePath("/a"))))
        #expect(try !Asking().authorise(rules, [("/a", 1)]).isAllowed)
    }

    @Test func denialsNameTheFailedValidation() throws {
        let rules = try Self.rules(Self.typed)
        let verdict = try Asking().authorise(rules, [("/m/1/text", "a"), ("/m/2", ["text": "b", "z": 1])])
        let validation = RulesDenial.Validation(path: try TreePath("/m/2/z"), rule: 3)
        #expect(verdict == .denied(RulesDenial(path: try TreePath("/m/2"), validation: validation)))
        #expect(rules.rules[3].pattern == "/m/$id/$other" && rules.rules[3].kind == .validate)
        #expect(rules.rules[3].text == "false")
    }

    @Test func traceHasEveryRuleAndThePartThatWasFalse() throws {
        let text = """
            {"rules": {
              ".write": "auth != null && auth.token.admin === true",
              "a": {
                ".write": "true || data.exists()",
                ".validate": "newData.isString() &&\\n  (newData.val().length < 3 || newData.val() == \\"long\\")",
              },
            }}
            """
        let rules = try Rules.compile(text)
        var recording = RulesRecording(trace: true)
        let verdict = try Asking(auth: .user("masuo")).authorise(rules, [("/a", "abcd")], recording: &recording)
        #expect(!verdict.isAllowed)
        let trace = try #require(recording.trace)
        #expect(trace.map(\.rule) == [0, 1, 2] && trace.map(\.result) == [false, true, false])
        #expect(trace.map(\.path.text) == ["/", "/a", "/a"])
        #expect(
            trace[0].failed == RulesTraceEntry.Excerpt(text: "auth.token.admin === true", line: 2, column: 30))
        #expect(trace[1].failed == nil)
        #expect(
            trace[2].failed
                == RulesTraceEntry.Excerpt(
                    text: "(newData.val().length < 3 || newData.val() == \"long\")", line: 5, column: 44))
        recording = RulesRecording(trace: true)
        _ = try Asking().authorise(rules, [("/a", ["x": 1])], recording: &recording)
        #expect(recording.trace?.last?.failed?.text == "newData.isString()")
    }

    @Test(arguments: [0, 1, 3, 20, 99, 100, 200])
    func traceKeepsTheLastEvaluatedRules(max: Int) throws {
        let rules = try Self.rules(#"{".write": true, "m": {"$id": {".validate": "newData.val() < 198"}}}"#)
        let values = JSONObject(uniqueMembers: (100..<300).map { .init("\($0)", .number(Double($0))) })
        var recording = RulesRecording(trace: true, traceMax: max)
        let verdict = try Asking().authorise(rules, [("/m", .object(values))], recording: &recording)
        #expect(!verdict.isAllowed)
        // The grant, 98 valid values and the invalid one.
        let kept = min(max, 100)
        let trace = try #require(recording.trace)
        #expect(trace.count == kept && recording.traceLeftOut == 100 - kept)
        let places = ["/"] + (100..<199).map { "/m/\($0)" }
        #expect(trace.map(\.path.text) == Array(places.suffix(kept)))
        #expect(trace.last?.result != true)
    }

    @Test func traceHasTheFailure() throws {
        let rules = try Self.rules(#"{".write": "1 < auth.token.level || true"}"#)
        var recording = RulesRecording(trace: true)
        _ = try Asking().authorise(rules, [("/a", 1)], recording: &recording)
        let entry = try #require(recording.trace?.first)
        #expect(entry.error == "Only two numbers or two strings have an order.")
        #expect(entry.failed?.text == "1 < auth.token.level" && entry.failed?.column == 23)
    }

    @Test func readsAreRecorded() throws {
        let rules = try Self.rules(
            """
            {"c": {"$c": {".read": "root.child('m/' + $c + '/' + auth.uid).exists() && data.child('n').val() > 1
                && data.hasChildren() && data.getPriority() == null || root.child('never').exists()"}}}
            """)
        let data: JSONValue = ["m": ["1": ["masuo": true]], "c": ["1": ["n": 2]]]
        var recording = RulesRecording(reads: true)
        let situation = RulesContext(auth: .user("masuo"), now: 0, before: try TreeNode(json: data))
        #expect(try rules.authoriseRead(TreePath("/c/1/x"), situation, recording: &recording).isAllowed)
        #expect(
            recording.reads?.reads == [
                RulesRead(path: try TreePath("/m/1/masuo"), aspect: .existence),
                RulesRead(path: try TreePath("/c/1/n"), aspect: .value),
                RulesRead(path: try TreePath("/c/1"), aspect: .children),
                RulesRead(path: try TreePath("/c/1"), aspect: .priority),
            ])
    }

    @Test func writtenValuesAreNotReadFromData() throws {
        let rules = try Self.rules(
            #"{"$a": {".write": "newData.child('x').isString()", "x": {".validate": "newData.val() != ''"}}}"#)
        var recording = RulesRecording(reads: true)
        #expect(try Asking().authorise(rules, [("/a", ["x": "b"])], recording: &recording).isAllowed)
        #expect(recording.reads?.reads.isEmpty == true)
    }

    /// Steps for one look, and few more for each path.
    @Test(arguments: [
        #"{"$a": {".write": "newData.hasChildren()"}}"#,
        #"{"$a": {".write": "newData.child('none').exists()", "$b": {".write": true}}}"#,
    ])
    func aRuleAboveManyPathsOfAnUpdateIsEvaluatedOnce(text: String) throws {
        let rules = try Self.rules(text)
        let targets = try (0..<100).map { RulesTarget(path: try TreePath("/a/k\($0)"), node: .leaf(.number(1))) }
        var situation = RulesContext(
            auth: .nobody, now: 0, before: TreeNode.empty, after: TreeNode.empty.setting(targets))
        situation.steps = RulesStepLimits(operationStepsMax: 1_000)
        #expect(try rules.authoriseWrite(targets, situation).isAllowed)
    }

    @Test func tooManyReadsCountAsEverything() throws {
        let rules = try Self.rules(#"{"$a": {".write": true, "$b": {".validate": "!root.child('x/' + $b).exists()"}}}"#)
        var value = JSONObject()
        for index in 0...RulesLimits.readsMax { value.append("k\(index)", 1) }
        var recording = RulesRecording(reads: true)
        #expect(try Asking().authorise(rules, [("/a", .object(value))], recording: &recording).isAllowed)
        #expect(recording.reads?.isOverflowing == true)
    }

    @Test func errorOfDataIsNoVerdict() throws {
        struct Broken: RulesData, Error {
            func leaf(at _: TreePath) throws -> TreeLeaf? { throw self }
            func exists(at _: TreePath) throws -> Bool { throw self }
            func hasChildren(at _: TreePath) throws -> Bool { throw self }
            func priority(at _: TreePath) throws -> TreePriority? { throw self }
        }
        let rules = try Self.rules(#"{".read": "root.child('a').exists() || true"}"#)
        #expect(throws: Broken.self) {
            try rules.authoriseRead(.root, RulesContext(auth: .nobody, now: 0, before: Broken()))
        }
    }
}
