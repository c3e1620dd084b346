import HatoModel

/// Random expressions of the rules language, and trees for them.
enum RandomExpression {
    static func tree(depth: Int, _ random: inout SplitMix) -> JSONValue {
        if depth == 0 || random.next() % 3 == 0 {
            return random.pick([nil, true, false, 0, 1, 2.5, "a", "ab", "", "3"])
        }
        var object = JSONObject()
        for key in ["a", "b", "c"] where random.next() % 3 > 0 { object[key] = tree(depth: depth - 1, &random) }
        return .object(object)
    }

    static func check(depth: Int, _ random: inout SplitMix) -> NaiveExpression {
        if depth == 0 { return .snapshot(snapshot(&random), random.pick(["exists", "hasChildren", "isString"])) }
        let (next, turn) = (depth - 1, random.next() % 9)
        switch turn {
        case 0: return .not(check(depth: next, &random))
        case 1, 2:
            return .binary(random.pick(["&&", "||"]), check(depth: next, &random), check(depth: next, &random))
        case 3:
            return .conditional(
                check(depth: next, &random), check(depth: next, &random), check(depth: next, &random))
        case 4: return .hasChildren(snapshot(&random), (0..<Int(random.next() % 3)).map { _ in key(&random) })
        case 5:
            return .text(
                term(depth: next, &random), random.pick(["contains", "beginsWith", "endsWith"]), key(&random))
        case 6: return .snapshot(snapshot(&random), random.pick(["exists", "isNumber", "isBoolean", "isString"]))
        default:
            return .binary(
                random.pick(["==", "!=", "<", ">="]), term(depth: next, &random), term(depth: next, &random))
        }
    }

    static func term(depth: Int, _ random: inout SplitMix) -> NaiveExpression {
        guard depth > 0 else { return key(&random) }
        let next = depth - 1
        switch random.next() % 12 {
        case 0: return .literal(random.pick([.number(1), .number(3), .string("ab"), .string("3"), .null]))
        case 1: return .minus(term(depth: next, &random))
        case 2, 3:
            return .binary(random.pick(["+", "+", "*", "/"]), term(depth: next, &random), term(depth: next, &random))
        case 4:
            return .conditional(
                check(depth: next, &random), term(depth: next, &random), term(depth: next, &random))
        case 5: return .text(term(depth: next, &random), "length", nil)
        case 6: return .text(term(depth: next, &random), random.pick(["toUpperCase", "toLowerCase"]), nil)
        case 8:
            return .replace(
                term(depth: next, &random), key(&random), random.pick([key(&random), .literal(.string("-"))]))
        case 7: return key(&random)
        default: return .snapshot(snapshot(&random), "val")
        }
    }

    /// An expression that may be a string.
    static func key(_ random: inout SplitMix) -> NaiveExpression {
        random.pick([
            .literal(.string("a")), .literal(.string("b")), .literal(.string("a/c")), .literal(.string("")),
            .known("$a", .string("a")), .known("$b", .string("b")), .known("auth.uid", .string("b")),
            .known("auth.token.name", .string("ab")), .known("auth.token.level", .number(3)),
            .known("auth.token.on", .bool(true)), .known("auth.token.none", .null),
            .known("now", .number(1_700_000_000_000)),
        ])
    }

    static func snapshot(_ random: inout SplitMix) -> NaiveSnapshot {
        var snapshot = random.pick([NaiveSnapshot.root, .data, .newData])
        for _ in 0..<Int(random.next() % 4) {
            snapshot = random.next() % 4 == 0 ? .parent(snapshot) : .child(snapshot, key(&random))
        }
        return snapshot
    }

    static let pieces = [
        "(", ")", "[", "]", "!", "-", "+", "*", "/", "%", "<", "<=", "==", "!==", "&&", "||", "?", ":", ".", ",", "'",
        "=", "1", "0.5", "1e3", "null", "true", "data", "newData", "root", "auth", "now", "query", "$a", "$none",
        ".val()", ".child('a')", ".parent()", ".exists()", ".length", ".uid", "['x']", ".hasChildren(['a'])",
        ".matches(/a+/i)", "/[a-z]{2}/", "'\\uD83D\\uDE00'", "\\", "\\uD83D", "😀", "\u{301}", "\n", "auth.token.level",
        ".replace('', 'x')", "query.limitToFirst", ".getPriority()", " ? 1 : 'a'",
    ]
}
