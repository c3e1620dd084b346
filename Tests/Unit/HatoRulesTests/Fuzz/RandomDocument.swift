import HatoModel

/// Random rules documents, valid or nearly valid.
enum RandomDocument {
    static func document(_ random: inout SplitMix) -> JSONValue { ["rules": node(depth: 3, &random)] }

    private static let right = [
        "auth != null", "data.val() == null", "root.child('a/b').exists()", "now > 1 || auth.uid == 'é😀'",
        "root.child('x').val().matches(/^[a-z]{1,20}$/i)", "root.hasChildren(['a', 'b'])", "query.limitToFirst == 1",
    ]
    private static let wrong = ["tr", "newData.exists()", "data", "1 + 1", "$a == 'é😀'", "auth.uid == $b", "'"]

    private static func node(depth: Int, _ random: inout SplitMix) -> JSONValue {
        var node = JSONObject()
        for kind in [".read", ".write", ".validate"] where random.next() % 3 == 0 {
            switch random.next() % 16 {
            case 0: node[kind] = .bool(random.next() % 2 == 0)
            case 1: node[kind] = .string(random.pick(wrong))
            case 2: node[kind] = .string(RandomExpression.check(depth: 1, &random).source)
            default: node[kind] = .string(random.pick(right))
            }
        }
        if random.next() % 4 == 0 { node[".indexOn"] = random.pick(["a", ["a", "b/c", ".value"], [], ".key"]) }
        if random.next() % 40 == 0 { node[".indexOn"] = random.pick(["x.y", 5]) }
        guard depth > 0 else { return .object(node) }
        for key in ["a", "$a", "é", "e\u{301}", "😀", "b c"] where random.next() % 5 == 0 {
            node[key] = self.node(depth: depth - 1, &random)
        }
        for key in ["a.b", "$", "$b", "/"] where random.next() % 80 == 0 {
            node[key] = random.next() % 2 == 0 ? 5 : self.node(depth: depth - 1, &random)
        }
        return .object(node)
    }

    static let pieces = [
        "{", "}", "[", "]", ",", ":", "\"", "\\", "//", "/*", "*/", "\n", "\t", "\u{FEFF}", "true", "null", "-1e9",
        "1e999",
        "\".read\"", "\".indexOn\"", "\"$a\": {}", "\"a\": {", "\\uD83D", "\\uDE00", "\\u00", "\"rules\"", "'", "😀",
        "é",
        "\\n", "$", "data.val()", ".length",
    ]

    static func text(_ document: JSONValue) -> String {
        var writer = JSONWriter()
        writer.write(document)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// The same with every character of its texts as an escape.
    static func escaped(_ value: JSONValue) -> String {
        switch value {
        case .object(let object):
            let members = object.members.map { "\(quoted($0.name)): \(escaped($0.value))" }
            return "{\(members.joined(separator: ",\n"))}"
        case .array(let elements): return "[\(elements.map(escaped).joined(separator: ","))]"
        case .string(let text): return quoted(text)
        default: return text(value)
        }
    }

    private static func quoted(_ text: String) -> String { PrintedExpression.quoted(text, quote: "\"") }
}

/// Random conditions over `after`, `before` and `chat`.
enum RandomPredicate {
    static func condition(depth: Int, _ random: inout SplitMix) -> String {
        if depth == 0 { return "\(value(depth: 1, &random)) \(random.pick(["==", "!="])) \(value(depth: 1, &random))" }
        let next = depth - 1
        switch random.next() % 6 {
        case 0: return "!(\(condition(depth: next, &random)))"
        case 1, 2:
            let symbol = random.pick(["&&", "||"])
            return "(\(condition(depth: next, &random))) \(symbol) (\(condition(depth: next, &random)))"
        case 3:
            let condition = { (random: inout SplitMix) in "(\(self.condition(depth: next, &random)))" }
            return "\(condition(&random)) ? \(condition(&random)) : \(condition(&random))"
        case 4: return "\(value(depth: 1, &random)).\(random.pick(["contains", "beginsWith", "endsWith"]))('a')"
        default:
            let symbol = random.pick(["==", "!=", "<", ">="])
            return "\(value(depth: next, &random)) \(symbol) \(value(depth: next, &random))"
        }
    }

    private static func value(depth: Int, _ random: inout SplitMix) -> String {
        if depth == 0 { return random.pick(["'a'", "'ab'", "after", "before", "chat", "after.a", "before.b.a"]) }
        let next = depth - 1
        switch random.next() % 8 {
        case 0: return "(\(value(depth: next, &random)) + \(value(depth: next, &random)))"
        case 1: return "\(value(depth: next, &random)).length"
        case 2: return "\(value(depth: next, &random)).toUpperCase()"
        case 3: return "\(random.pick(["after", "before"]))[\(value(depth: next, &random))]"
        case 4: return random.pick(["1", "3", "null", "true", "-1"])
        default:
            return random.pick(["after.a", "before.a", "after['b'].c", "chat", "after", "before", "after.a.length"])
        }
    }

    static let pieces = [
        "(", ")", "[", "]", ".", "'", "!", "&&", "||", "?", ":", "==", "<", "+", "-", "*", "/", "%", "1", "after",
        "before",
        "chat", "none", ".length", ".length.length", ".contains('a')", ".toUpperCase()", "['a']", "null", "true", "'a'",
        "/a/", "[1]", "😀", "\\u0041", "\n",
    ]
}
