import HatoModel
import HatoRules
import Testing

/// Conditions over values, by tables.
@Suite struct RulesPredicateTests {
    private static let names = ["after", "before", "chat"]

    private let values: [String: JSONValue] = [
        "after": [
            "kind": "text", "text": "ただいま @サザエ", "n": 3, "on": true, "author": ["uid": "u1"], "first-name": "波平",
            "ranked": [".value": "gold", ".priority": 1],
        ],
        "before": ["kind": "draft"], "chat": "c1",
    ]

    private func holds(_ text: String) throws -> Bool {
        try RulesPredicate(text, names: Self.names).holds { values[$0] }
    }

    @Test(arguments: [
        "true", "after.kind == 'text'", "after['kind'] === \"text\"", "after.author.uid != chat", "after.on == true",
        "after['first-name'] == '波平'", "after.ranked == 'gold'", "after.missing == null", "after.kind.deeper == null",
        "after.kind != before.kind && chat == 'c1'", "!(after.n > 3) || false", "after.n >= 3", "-after.n < 0",
        "after.n * 2 + 1 == 7 && after.n % 2 == 1 && after.n / 2 - 1 == 0.5", "after.kind + after.n == 'text3'",
        "after.kind < 'texts' && 'a' <= 'a'", "after.text.contains('@サザエ')", "after.text.contains('')",
        "after.text.beginsWith('ただ')", "after.kind.endsWith('xt')", "after.kind.toUpperCase() == 'TEXT'",
        "'ABC'.toLowerCase() == 'abc'", "after.on == true ? after.n == 3 : false", "'aabaabaaa'.contains('aabaaa')",
        "after.text.length == 9 && 'a😀'.length == 3 && 'x'.toUpperCase().length == 1", "after.n.length == null",
        "after.length == null", "!(after.n / 0 > 1) && !(after.n / 0 < 1)",
        "after == after", "before.kind == 'draft' || after.n > 'x'",
        // A node with children has a value of its own: neither null nor a primitive.
        "after != null", "after.author != null", "!(after.author == null)", "after.author != 'u1'",
    ])
    func whatHolds(_ text: String) throws {
        #expect(try holds(text))
    }

    @Test(arguments: [
        "false", "after.kind == 'TEXT'", "after.n == '3'", "before == null", "after.author == null",
        "after.author + 'x' != 'y'", "after.author < 1", "after.author.contains('u')", "-after.author != 1",
        "after.kind.contains('texts')",
        "after.text.endsWith('波平')", "chat.beginsWith('c12')",
        // A condition that cannot be evaluated does not hold.
        "after.missing < 1", "after.n < 'x'", "after.missing.contains('x')", "after.n.contains('3')",
        "after.n / 0 > 1", "-after.n / 0 < 1", "after.n / 0 == after.n / 0", "after.n % 0 >= 0",
        "after.on + 1 == 2", "after[after.n] == null", "after.n / 0 == after.n / 0 - 1 + 'x'",
    ])
    func whatDoesNotHold(_ text: String) throws {
        #expect(try !holds(text))
    }

    @Test(arguments: [
        ("after.kind", 1, "Expression must evaluate to a boolean."),
        ("'text'", 1, "Expression must evaluate to a boolean."),
        ("true && afer.kind == 'x'", 9, "Unknown variable 'afer'; there are after, before, chat."),
        ("!after.muted", 2, "! only operates on booleans."),
        ("true && after.on", 9, "Right operand of && must be boolean."),
        ("after.n < true", 11, "Invalid < expression: right operand must be a number or string."),
        ("1 - 'a' == 0", 5, "Invalid - expression: right operand is not a number."),
        ("after.text.matches(/x/)", 12, "No such method/property 'matches'."),
        ("after.text.contains() == true", 12, "contains() expects 1 argument."),
        ("after.text.contains(1)", 21, "contains() expects a string argument."),
        ("after.text == /x/", 15, "Regular expressions are not supported in conditions."),
        ("after.list == ['x']", 15, "Unexpected array literal."),
        ("'a'.b == null", 1, "Invalid property access: target is not an object."),
        ("chat('x')", 1, "Type error: Function call on target that is not a function."),
        ("after.kind = 'text'", 12, "Rule expressions may not contain assignments."),
        ("after.kind ==", 14, "Parse error."),
        ("", 1, "Parse error."),
    ])
    func wrongConditionsAreRefusedWithTheirPosition(_ text: String, column: Int, message: String) {
        #expect(throws: RulesProblem(line: 1, column: column, message: message)) {
            try RulesPredicate(text, names: Self.names)
        }
    }

    @Test func conditionsCostLittle() throws {
        let long = String(repeating: " ", count: RulesLimits.predicateBytesMax) + "true"
        #expect(throws: RulesProblem.self) { try RulesPredicate(long, names: []) }
        let deep = String(repeating: "(", count: 500) + "true" + String(repeating: ")", count: 500)
        #expect(throws: RulesProblem.self) { try RulesPredicate(deep, names: []) }
        // Concatenation stops at the limit instead of building texts of megabytes.
        let big = JSONValue.string(String(repeating: "a", count: 600_000))
        #expect(try !RulesPredicate("after + after + after != 'x'", names: ["after"]).holds { _ in big })
        let sought = JSONValue.string(String(repeating: "a", count: 300_000) + "b")
        #expect(
            try !RulesPredicate("after.contains(before)", names: Self.names).holds { $0 == "after" ? big : sought })
    }

    /// Each operation on long values counts, so that no condition repeats one often.
    @Test(arguments: [
        "text.toLowerCase() == 'x'", "text.toUpperCase() == 'x'", "text.contains('x')", "'x'.contains(text)",
        "text == other", "text != text", "text < text", "text.length == 1", "other.beginsWith(text)",
        "other.endsWith(text)", "node != node", "wide.x == 1", "wide['x'] == 1", "half + half == 'x'",
    ])
    func workOnLongValuesIsBounded(_ part: String) throws {
        let (text, half) = (String(repeating: "a", count: 1 << 20), String(repeating: "a", count: 1 << 19))
        let members = (0..<500_000).map { JSONObject.Member("k\($0)", 1) }
        let values: [String: JSONValue] = [
            "text": .string(text), "other": .string("b" + text.dropFirst()), "half": .string(half),
            "node": ["a": .string(text), "b": ["c": .string(text)]],
            "wide": .object(JSONObject(uniqueMembers: members)),
        ]
        func truth(_ text: String) throws -> RulesPredicate.Truth {
            try RulesPredicate(text, names: ["text", "other", "half", "node", "wide"]).truth(unknown: []) { values[$0] }
        }
        #expect(try truth(part) == .doesNotHold)
        let often = Array(repeating: part, count: 40).joined(separator: " || ")
        #expect(try truth(often) == .tooMuchWork && truth("!(\(often))") == .tooMuchWork)
    }

    @Test(arguments: [
        ("before.kind == 'draft'", RulesPredicate.Truth.unknown), ("before == null", .unknown),
        ("before.kind != null && after.n == 3", .unknown), ("before.kind != null && after.n == 4", .doesNotHold),
        ("after.n == 4 && before.kind != null", .doesNotHold), ("before.kind != null || after.n == 3", .holds),
        ("before.kind != null || after.n == 4", .unknown), ("!(before.kind == 'x')", .unknown),
        ("chat == 'c1' ? before.n > 1 : false", .unknown), ("chat == 'c2' ? before.n > 1 : true", .holds),
        ("after.n > 'x' || before.n == 1", .doesNotHold), ("after.text.contains(before.text)", .unknown),
    ])
    func unknownValuesOnlyAffectConditionsThatReadThem(_ text: String, truth: RulesPredicate.Truth) throws {
        let condition = try RulesPredicate(text, names: Self.names)
        #expect(condition.truth(unknown: ["before"]) { $0 == "before" ? nil : values[$0] } == truth)
    }

    @Test func conditionReportsItsReads() throws {
        let condition = try RulesPredicate(
            "after.author['uid'] != before.uid && after.text.contains(chat) && after[chat] == null"
                + " && after.text.length > 3", names: Self.names)
        #expect(
            condition.memberPaths == [
                ["after", "author", "uid"], ["before", "uid"], ["after", "text"], ["chat"], ["after"], ["chat"],
                ["after", "text"],
            ])
    }
}
