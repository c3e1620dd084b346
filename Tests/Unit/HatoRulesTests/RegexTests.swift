import Testing

@testable import HatoRules

/// Regular expressions (spec §9.5): their matches, refused patterns, and bounded time for every text.
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
        // Only the letters of US-ASCII are folded.
        ("/^ÀÉ$/i", ["ÀÉ"], ["ae", "àé", "Àé"]),
        ("/^àé$/i", ["àé"], ["ÀÉ"]),
        ("/s/i", ["s", "S"], ["ſ", "ß"]),
        ("/S/i", ["s", "S"], ["ſ"]),
        ("/k/i", ["k", "K"], ["\u{212A}"]),
        ("/\u{212A}/i", ["\u{212A}"], ["k", "K"]),
        ("/ſ/i", ["ſ"], ["s", "S"]),
        ("/[a-z]/i", ["Q", "q"], ["ſ", "\u{212A}", "İ", "ı"]),
        ("/^[^a-z]$/i", ["ſ", "\u{212A}", "1"], ["a", "A"]),
        ("/^[Z-a]$/i", ["z", "Z", "a", "A", "_"], ["b", "y"]),
        ("/^[^K-s]$/i", ["1", "~", "\u{212A}"], ["K", "k", "s", "S", "a", "A", "_", "t", "Z"]),
        ("/σ/i", ["σ"], ["Σ", "ς"]),
        ("/^\\w$/i", ["k"], ["\u{212A}"]),
        // A surrogate pair in escapes is one scalar.
        ("/^\\uD83D\\uDE00$/", ["😀"], ["😁", ""]),
        ("/^\\ud83d\\ude00{2}$/", ["😀😀"], ["😀"]),
        ("/^[\\uD83D\\uDE00-\\uD83D\\uDE02]$/", ["😀", "😁", "😂"], ["😃"]),
        // Repetitions of nothing.
        ("/^((((a{0}){1000}){1000}){1000})$/", [""], ["a"]),
        ("/^((a{0})*b)+$/", ["b", "bb"], ["", "a"]),
        ("/^(a{0}|b)c$/", ["c", "bc"], ["ac"]),
        ("/^(a{0}b{0}c){2}$/", ["cc"], ["c", "abcabc"]),
        ("/^((((a{500}){500}){500}){0})$/", [""], ["a"]),
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
        "(^a$|b)", "\\uD83D", "\\uDE00", "\\uD83Dx", "\\uD83D\\u0041", "\\uDE00\\uD83D", "[\\uD83D]", "\\x４１",
        "a{1001}", "(((a{500}){500}){500})",
    ])
    func unsupportedRegexFeaturesAreRefused(pattern: String) {
        #expect(throws: RegexFault.self) { try RegexProgram(pattern, isCaseInsensitive: false) }
    }

    @Test func deepBracketsAreRefusedNotCrashed() {
        let pattern = String(repeating: "(", count: 100_000) + "a" + String(repeating: ")", count: 100_000)
        #expect(throws: RegexFault.self) { try RegexProgram(pattern, isCaseInsensitive: false) }
    }

    /// Patterns that take exponential time in backtracking engines take steps in proportion to the text here.
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
}
