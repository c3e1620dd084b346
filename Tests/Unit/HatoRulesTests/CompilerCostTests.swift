import HatoModel
import Testing

@testable import HatoRules

/// The work of every compiler grows with its text: counted, not timed.
@Suite struct CompilerCostTests {
    private static func parsed(_ text: String) throws -> RulesExpression {
        let scalars = Array(text.unicodeScalars)
        return try RulesExpressionParser.parse(
            RulesDocument.LocatedText(scalars: scalars, offsets: Array(scalars.indices), end: scalars.count))
    }

    // MARK: Conditions

    @Test(arguments: [
        "after" + String(repeating: ".length", count: 200) + " == 1",
        "'a'" + String(repeating: ".toUpperCase()", count: 100) + ".length == 1",
        String(repeating: "after.x.length + ", count: 200) + "1 == 1",
        String(repeating: "after[", count: 50) + "after.length.length" + String(repeating: "]", count: 50) + " == 1",
        String(repeating: "(after.a.length == 1 ? ", count: 25) + "true" + String(repeating: " : false)", count: 25),
    ])
    func everyPartOfAConditionIsVisitedOnce(text: String) throws {
        let expression = try Self.parsed(text)
        var checker = RulesPredicateChecker(names: ["after"])
        try checker.check(expression)
        #expect(checker.visits <= expression.count, "\(text)")
        #expect(try RulesPredicate(text, names: ["after"]).text == text)
    }

    // MARK: Regular expressions

    @Test(arguments: [
        ("((((a{0}){1000}){1000}){1000})", 1), ("((((a{0})*)*){1000})", 1), ("(a{0}b){1000}", 1_001),
        ("((((a{500}){500}){500}){0})", 1), ("(((a{1}){1}){1}){1000}", 1_001), ("(a{0}|b{0}){10}", 21),
        ("((((a|b)?){2}){2}){2}", 41),
    ])
    func emptyPartsOfARegexCostNothing(pattern: String, instructions: Int) throws {
        #expect(try RegexProgram(pattern, isCaseInsensitive: false).instructions.count == instructions)
        let measured = try RegexMeasure.simplified(RegexParser.parse(pattern, isCaseInsensitive: false))
        var builder = RegexProgramBuilder(capacity: 0)
        if let measured { builder.append(measured.node) }
        // An instruction is nested in at most as many parts as brackets are allowed.
        #expect(builder.visits <= RulesLimits.expressionDepthMax * instructions, "\(builder.visits)")
        #expect(builder.instructions.count == measured?.size ?? 0)
    }

    @Test func emptySequencesAreLeftOutBeforeTheyAreRepeated() throws {
        let pattern = "((" + String(repeating: "a{0}", count: 2_000) + "b){60}){60}"
        let measured = try #require(
            try RegexMeasure.simplified(RegexParser.parse(pattern, isCaseInsensitive: false)))
        var builder = RegexProgramBuilder(capacity: 0)
        builder.append(measured.node)
        #expect(builder.visits < 10_000 && measured.size == 3_600)
    }

    /// Steps of a match that read no character are charged, too.
    @Test func emptyAlternativesOfARegexTakeSteps() throws {
        let pattern = "(" + Array(repeating: "a{0}", count: 1_000).joined(separator: "|") + ")*b"
        let program = try RegexProgram(pattern, isCaseInsensitive: false)
        var steps = 100_000
        let found = RegexMatcher.finds(program, in: String(repeating: "c", count: 1_000), steps: &steps)
        #expect(found == nil && steps < 0)
    }

    @Test func rangesOfAClassAreMerged() {
        var many: [ClosedRange<UInt32>] = []
        for number in UInt32(0)..<5_000 {
            let first = 0x4E00 + 2 * number
            many.append(first...first + 1)
        }
        let whole: ClosedRange<UInt32> = 0x4E00...0x750F
        #expect(RegexSet(many.reversed()) == RegexSet([whole]))
        #expect(RegexSet([0xE9...0xF0, 0xE0...0xEA, 0x61...0x61]) == RegexSet([0x61...0x61, 0xE0...0xF0]))
    }

    @Test func regularExpressionsOfADocumentAreBoundedTogether() throws {
        func document(_ count: Int) -> String {
            let rules = (0..<count).map { #""k\#($0)": {".read": "auth.uid.matches(/(aaaaa){999}/)"}"# }
            return "{\"rules\": {\(rules.joined(separator: ","))}}"
        }
        #expect(RulesDocumentTests.problems(document(100)).isEmpty)
        let problem = try #require(RulesDocumentTests.problems(document(102)).first)
        #expect(problem.contains(": The regular expressions of these rules are too large together (the maximum is "))
        // A database opens with its stored rules.
        #expect(try Rules.compile(stored: document(102)).rules.count == 102)
    }

    // MARK: Documents

    @Test func rulesOfOneBranchShareTheirPattern() throws {
        let key = String(repeating: "k", count: 700)
        let rules = (0..<100).map { "\"\($0)\": {\".read\": true}" }.joined(separator: ",")
        let compiled = try Rules.compile("{\"rules\": {\"\(key)\": {\"$a\": {\(rules)}}}}").rules
        #expect(compiled[7].pattern == "/\(key)/$a/7")
        #expect(
            compiled.allSatisfy {
                $0.nodePattern?.parent === compiled[0].nodePattern?.parent && $0.nodePattern?.parent != nil
            })
    }

    @Test func problemsOfADocumentAreBounded() {
        let wrong = Array(repeating: "x", count: 20_000).joined(separator: ", ")
        let single = RulesDocumentTests.problems("{\"rules\": {\".read\": \"root.hasChildren([\(wrong)])\"}}")
        #expect(single.count == RulesLimits.problemsMax)
        let many = (0..<2_000).map { "\"\($0)\": {\".read\": \"x\"}" }.joined(separator: ",")
        #expect(RulesDocumentTests.problems("{\"rules\": {\(many)}}").count == RulesLimits.problemsMax)
        // A long name is not repeated in the message of each of its siblings.
        let long = "\"$" + String(repeating: "n", count: 100_000) + "\": {}"
        let wildcards = (0..<1_500).map { "\"$\($0)\": {}" }.joined(separator: ",")
        let messages = RulesDocumentTests.problems("{\"rules\": {\(long),\(wildcards)}}")
        #expect(messages.count == RulesLimits.problemsMax && messages.allSatisfy { $0.utf8.count < 400 })
    }

    /// A hundred thousand nested levels of any kind are refused where the nesting gets too deep.
    @Test(arguments: [
        ("(", "true", ")"), ("!", "true", ""), ("-", "1", " == 1"), ("true ? ", "true", " : false"),
        ("true ? true : ", "true", ""), ("auth[", "'a'", "] == 1"), ("root.hasChildren([", "'a'", "])"),
        ("data.child(", "'a'", ").exists()"), ("", "auth", ".a"), ("", "data", ".parent()"), ("1 + ", "1", ""),
        ("'' + ", "''", ""), ("true && ", "true", ""), ("[", "1", "]"), ("1 == ", "1", ""), ("!(", "true", ")"),
        ("'a'.contains(", "'a'", ")"), ("", "'a'", ".toUpperCase()"),
    ])
    func deepExpressionsAreRefusedNotCrashed(opening: String, middle: String, closing: String) throws {
        for count in [10, 59, 240, 1_000, 20_000] {
            let text =
                String(repeating: opening, count: count) + middle + String(repeating: closing, count: count)
            let problems = RulesDocumentTests.problems("{\"rules\": {\".read\": \"\(text)\"}}")
            guard count >= 1_000 else { continue }
            #expect(problems.count == 1, "\(opening)")
            #expect(throws: RulesProblem.self) { try RulesPredicate(text, names: ["data"]) }
        }
    }

    @Test(arguments: ["{\"a\":", "[", "{\"rules\":{\"a\":", "{\"rules\":[[", "/*", "\"", "\"\\u"])
    func deepDocumentsAreRefusedNotCrashed(opening: String) {
        #expect(RulesDocumentTests.problems(String(repeating: opening, count: 30_000)).count == 1)
    }
}
