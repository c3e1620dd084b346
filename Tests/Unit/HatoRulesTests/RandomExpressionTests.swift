import HatoModel
import HatoRules
import Testing

/// Random expressions over random trees give what their definition gives: a value, or an error that fails the rule.
@Suite struct RandomExpressionTests {
    @Test func randomExpressionsAreWhatTheirDefinitionSays() throws {
        let seed: UInt64 = 1
        var random = SplitMix(seed: seed)
        var counts: [Asking.Outcome: Int] = [:]
        for round in 0..<4_000 {
            let data = Self.tree(depth: 3, &random)
            let value = Self.tree(depth: 2, &random)
            let expression = Self.check(depth: 4, &random)
            let asking = Asking(auth: .user("b", ["level": 3, "name": "ab", "on": true]), data: data)
            // Types are the checker's; what it refuses is not asked.
            guard let found = try? asking.outcome(of: expression.source, at: "/a/b", writing: value) else { continue }
            let before = try TreeNode(json: data)
            let path = try TreePath("/a/b")
            let after = before.setting(try TreeNode(json: value), at: path)
            let wanted = try? expression.value(NaiveWorld(before: before, after: after, keys: path.keys))
            let isSame = wanted.map { $0 == .bool(true) ? found == .true : found == .false } ?? found.isError
            #expect(
                isSame,
                "seed \(seed), round \(round): \(expression.source) is \(found), not \(String(describing: wanted))")
            counts[found.isError ? .error("") : found, default: 0] += 1
        }
        for outcome in [Asking.Outcome.true, .false, .error("")] {
            #expect(counts[outcome, default: 0] > 200, "seed \(seed): \(counts)")
        }
    }

    private static func tree(depth: Int, _ random: inout SplitMix) -> JSONValue {
        if depth == 0 || random.next() % 3 == 0 {
            return random.pick([nil, true, false, 0, 1, 2.5, "a", "ab", "", "3"])
        }
        var object = JSONObject()
        for key in ["a", "b", "c"] where random.next() % 3 > 0 { object[key] = tree(depth: depth - 1, &random) }
        return .object(object)
    }

    private static func check(depth: Int, _ random: inout SplitMix) -> NaiveExpression {
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

    private static func term(depth: Int, _ random: inout SplitMix) -> NaiveExpression {
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
        case 6: return .text(term(depth: next, &random), "toUpperCase", nil)
        case 7: return key(&random)
        default: return .snapshot(snapshot(&random), "val")
        }
    }

    /// What may be a string.
    private static func key(_ random: inout SplitMix) -> NaiveExpression {
        random.pick([
            .literal(.string("a")), .literal(.string("b")), .literal(.string("a/c")), .literal(.string("")),
            .known("$a", .string("a")), .known("$b", .string("b")), .known("auth.uid", .string("b")),
            .known("auth.token.name", .string("ab")), .known("auth.token.level", .number(3)),
            .known("auth.token.on", .bool(true)), .known("auth.token.none", .null),
            .known("now", .number(1_700_000_000_000)),
        ])
    }

    private static func snapshot(_ random: inout SplitMix) -> NaiveSnapshot {
        var snapshot = random.pick([NaiveSnapshot.root, .data, .newData])
        for _ in 0..<Int(random.next() % 4) {
            snapshot = random.next() % 4 == 0 ? .parent(snapshot) : .child(snapshot, key(&random))
        }
        return snapshot
    }
}
