@testable import HatoRules

/// A reference implementation of regular expressions, and random ones.
enum NaiveRegex {
    static func finds(_ node: RegexNode, in text: [Unicode.Scalar]) -> Bool {
        (0...text.count).contains { !ends(node, text, $0).isEmpty }
    }

    /// The possible ends of a match that begins at `start`.
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
            var count = 0
            while maximum.map({ count < $0 }) ?? true {
                let next = Set(places.flatMap { ends(node, text, $0) })
                count += 1
                // Matches only move forward: a set that did not change once does not change any more.
                if next == places || next.isEmpty { return found.union(next) }
                places = next
                if count >= minimum { found.formUnion(places) }
            }
            return found
        }
    }

    /// A valid pattern, though perhaps too large.
    static func pattern(depth: Int, _ random: inout SplitMix) -> String {
        let start = random.next() % 5 == 0 ? "^" : ""
        return start + inner(depth: depth, &random) + (random.next() % 5 == 0 ? "$" : "")
    }

    private static func inner(depth: Int, _ random: inout SplitMix) -> String {
        if depth == 0 || random.next() % 4 == 0 { return random.pick(atoms) }
        let (first, second) = (inner(depth: depth - 1, &random), inner(depth: depth - 1, &random))
        switch random.next() % 4 {
        case 0: return first + second
        case 1: return "(\(first)|\(second))"
        case 2: return "(\(first))" + random.pick(quantifiers)
        default: return "(\(first)\(second))"
        }
    }

    private static let quantifiers = ["*", "+", "?", "{0}", "{1}", "{2}", "{1,}", "{0,2}", "{2,3}", "{0,0}", "{1000}"]
    private static let atoms = [
        "a", "b", "k", "S", ".", "[ab]", "[^a]", "[a-z]", "[^A-Zé]", "\\w", "\\W", "\\d", "\\s", "c", "é", "😀",
        "\\uD83D\\uDE00", "\\x41", "[\\d\\uD83D\\uDE00-\\uD83D\\uDE02]", "\\.", "[-a]", "[\\]b]", "b{0}", "ſ",
    ]
    static let pieces = [
        "(", ")", "[", "]", "{", "}", "|", "*", "+", "?", "^", "$", "\\", "a", "0", "1", ",", "-", ".", "{0}", "{1000}",
        "\\u", "\\uD83D", "\\uDE00", "\\x4", "\\d", "(?:", "[^", "a-b", "😀", "\u{212A}",
    ]

    static func text(_ random: inout SplitMix) -> String {
        (0..<Int(random.next() % 6)).map { _ in
            random.pick([
                "a", "b", "c", "k", "K", "s", "S", "A", "1", "é", "É", "😀", "😂", "ſ", "\u{212A}", " ", "\n", ".",
            ])
        }.joined()
    }
}
