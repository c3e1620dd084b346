import Testing

@testable import HatoRules

/// Regular expressions (spec §9.5): what they match, what is refused, and that no text takes long.
@Suite struct RegexTests {
    static func finds(_ pattern: String, _ text: String) throws -> Bool {
        var parts = pattern.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        let flags = parts.removeLast()
        let program = try RegexProgram(
            parts.dropFirst().joined(separator: "/"), isCaseInsensitive: flags == "i")
        var steps = 1_000_000
        return RegexMatcher.finds(program, in: text, steps: &steps) ?? false
    }

    @Test(arguments: [
        ("/b/", ["b", "abc"], ["", "a"]),
        ("/^b/", ["b", "bc"], ["ab"]),
        ("/b$/", ["b", "ab"], ["ba"]),
        ("/^$/", [""], ["a"]),
        ("/^a|b$/", ["ax", "xb"], ["xa", "bx"]),
        ("/./", ["a", "é", "😀"], ["", "\n", "\r", "\u{2028}"]),
        ("/^.$/", ["a", "😀"], ["ab"]),
        ("/^[a-c]+$/", ["a", "abc"], ["", "abd"]),
        ("/^[^a-c]$/", ["d", "日"], ["a", ""]),
        ("/^[-a]+$/", ["-a-"], ["b"]),
        ("/^[a-]+$/", ["-a-"], ["b"]),
        ("/^[\\]\\\\]$/", ["]", "\\"], ["a"]),
        ("/^[\\d-x]+$/", ["1-x"], ["y"]),
        ("/^[^\\w]$/", [" ", "é"], ["a", "_", "9"]),
        ("/^[\\W]$/", [" ", "é"], ["a"]),
        ("/^[/]$/", ["/"], ["a"]),
        ("/^\\d+$/", ["0123456789"], ["", "a", "١"]),
        ("/^\\D$/", ["a", "é"], ["1"]),
        ("/^\\w+$/", ["aZ_9"], ["-", "é"]),
        ("/^\\s$/", [" ", "\t", "\u{A0}", "\u{FEFF}"], ["a", "\u{200B}"]),
        ("/^\\S$/", ["a"], [" "]),
        ("/^\\/\\.\\*\\{}\\$\\^$/", ["/.*{}$^"], ["x"]),
        ("/^\\t\\n\\x41\\u00e9$/", ["\t\nAé"], ["t"]),
        ("/^(a|bc)d$/", ["ad", "bcd"], ["abcd", "d"]),
        ("/^(a(b|c)+)*$/", ["", "ab", "abcac"], ["a"]),
        ("/^a*$/", ["", "aaa"], ["b"]),
        ("/^a+$/", ["a", "aaa"], [""]),
        ("/^ab?c$/", ["ac", "abc"], ["abbc"]),
        ("/^a{3}$/", ["aaa"], ["aa", "aaaa"]),
        ("/^a{2,}$/", ["aa", "aaaaa"], ["a"]),
        ("/^a{1,2}$/", ["a", "aa"], ["", "aaa"]),
        ("/^a{0}b$/", ["b"], ["ab"]),
        ("/^(a*)*$/", ["", "aaa"], ["b"]),
        ("/^(a*)+b$/", ["b", "aab"], ["a"]),
        ("/^foo]}$/", ["foo]}"], ["foo"]),
        ("/^ÀÉ$/i", ["àé", "Àé"], ["ae"]),
        ("/[A-Z]{3}/i", ["xabcx"], ["ab1"]),
        ("/^[^a]$/i", ["b"], ["a", "A"]),
        ("/^(19|20)\\d\\d[-\\/. ](0[1-9]|1[012])[-\\/. ](0[1-9]|[12][0-9]|3[01])$/", ["2016-01-31"], ["2016-13-01"]),
        ("/^[A-Z0-9._%+-]+@[A-Z0-9.-]+\\.[A-Z]{2,4}$/i", ["masuo@example.com"], ["masuo@example", "@a.de"]),
    ])
    func matchesWhatItSays(pattern: String, matching: [String], others: [String]) throws {
        for text in matching { #expect(try Self.finds(pattern, text), "\(pattern) \(text)") }
        for text in others { #expect(try !Self.finds(pattern, text), "\(pattern) \(text)") }
    }

    @Test(arguments: [
        "", "(", ")", "a)", "(a", "()", "(|a)", "(a|)", "a|", "|a", "||", "*", "+a", "?", "{2}", "a{", "a{x}", "a{2",
        "a{2,1}", "a**", "a*?", "a+?", "a{2}{3}", "a??", "[", "[]", "[^]", "[b-a]", "[a", "\\", "a^b", "(^a)", "^*",
        "a$b", "(a$)", "$a", "(?:a)", "(?=a)", "(?i)a", "\\1", "\\b", "\\B", "\\k", "\\x4", "\\u00g0", "\\0", "^^",
        "$$",
        "(^a$|b)", "a{1001}", "(((a{500}){500}){500})",
    ])
    func whatOtherEnginesKnowIsRefused(pattern: String) {
        #expect(throws: RegexFault.self) { try RegexProgram(pattern, isCaseInsensitive: false) }
    }

    @Test func deepBracketsAreRefusedNotCrashed() {
        let pattern = String(repeating: "(", count: 100_000) + "a" + String(repeating: ")", count: 100_000)
        #expect(throws: RegexFault.self) { try RegexProgram(pattern, isCaseInsensitive: false) }
    }

    /// What drives other engines into exponential time takes steps in proportion to the text here.
    @Test(arguments: [
        "^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "(.*a){10}$", "^([a-z]+)*[0-9]$", "(a?){20}a{20}",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
    ])
    func timeGrowsWithTheTextOnly(pattern: String) throws {
        let program = try RegexProgram(pattern, isCaseInsensitive: false)
        func steps(_ count: Int) -> Int {
            var left = Int.max / 2
            let start = left
            _ = RegexMatcher.finds(program, in: String(repeating: "a", count: count) + "!", steps: &left)
            return start - left
        }
        let (short, long) = (steps(500), steps(1_000))
        #expect(long <= 2 * short + 200, "\(pattern): \(short), \(long)")
        #expect(long <= 1_002 * (program.instructions.count + 1))
    }

    @Test func stepsEndAMatch() throws {
        let program = try RegexProgram("a*b", isCaseInsensitive: false)
        var steps = 100
        #expect(RegexMatcher.finds(program, in: String(repeating: "a", count: 1_000), steps: &steps) == nil)
    }

    /// Against a backtracking matcher that is nothing but the definition, on small random patterns and texts.
    @Test func randomPatternsMatchLikeTheirDefinition() throws {
        var random = SplitMix(seed: 7)
        for round in 0..<3_000 {
            let pattern = Self.pattern(depth: 3, &random)
            guard let node = try? RegexParser.parse(pattern, isCaseInsensitive: false) else {
                Issue.record("\(pattern) is refused")
                continue
            }
            let program = try RegexProgram(pattern, isCaseInsensitive: false)
            for _ in 0..<5 {
                let text = String((0..<Int(random.next() % 7)).map { _ in random.pick(["a", "b", "c"]) }.joined())
                let scalars = Array(text.unicodeScalars)
                let wanted =
                    scalars.indices.contains { Self.ends(node, scalars, $0).isEmpty == false }
                    || !Self.ends(node, scalars, scalars.count).isEmpty
                var steps = 100_000
                let found = RegexMatcher.finds(program, in: text, steps: &steps)
                #expect(found == wanted, "round \(round): /\(pattern)/ on \(text)")
            }
        }
    }

    private static func pattern(depth: Int, _ random: inout SplitMix) -> String {
        if depth == 0 || random.next() % 4 == 0 { return random.pick(["a", "b", ".", "[ab]", "[^a]", "\\w", "c"]) }
        let inner = { (random: inout SplitMix) in pattern(depth: depth - 1, &random) }
        switch random.next() % 4 {
        case 0: return inner(&random) + inner(&random)
        case 1: return "(" + inner(&random) + "|" + inner(&random) + ")"
        case 2: return "(" + inner(&random) + ")" + random.pick(["*", "+", "?", "{2}", "{1,}", "{0,2}"])
        default: return "(" + inner(&random) + inner(&random) + ")"
        }
    }

    /// Where a match that begins at `start` may end.
    private static func ends(_ node: RegexNode, _ text: [Unicode.Scalar], _ start: Int) -> Set<Int> {
        switch node {
        case .set(let set): return start < text.count && set.contains(text[start]) ? [start + 1] : []
        case .start: return start == 0 ? [start] : []
        case .end: return start == text.count ? [start] : []
        case .sequence(let nodes):
            return nodes.reduce([start]) { places, node in Set(places.flatMap { ends(node, text, $0) }) }
        case .alternatives(let nodes): return Set(nodes.flatMap { ends($0, text, start) })
        case .repetition(let node, let minimum, let maximum):
            var found: Set<Int> = minimum == 0 ? [start] : []
            var places: Set<Int> = [start]
            for count in 1...(maximum ?? minimum + text.count + 1) + 1 {
                if let maximum, count > maximum { break }
                places = Set(places.flatMap { ends(node, text, $0) })
                if count >= minimum { found.formUnion(places) }
                if places.isEmpty { break }
            }
            return found
        }
    }
}

/// A small generator with a seed, so that what fails can be seen again.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int(next() % UInt64(elements.count))]
    }
}
