import HatoModel

@testable import HatoRules

/// Properties of one random input; each check returns a violation.
enum FuzzChecks {
    // MARK: Regular expressions

    static func regex(_ random: inout SplitMix, _ count: (String) -> Void) -> String? {
        let turn = random.next() % 10
        var pattern = NaiveRegex.pattern(depth: 3, &random)
        if turn == 0 { pattern = FuzzMutation.noise(&random) }
        if (1...4).contains(turn) { pattern = FuzzMutation.mutated(pattern, NaiveRegex.pieces, &random) }
        let isCaseInsensitive = random.next() % 2 == 0
        let node: RegexNode
        let program: RegexProgram
        do {
            node = try RegexParser.parse(pattern, isCaseInsensitive: isCaseInsensitive)
            program = try RegexProgram(pattern, isCaseInsensitive: isCaseInsensitive)
        } catch {
            count("refused")
            return turn > 4 && error != .tooLarge ? "/\(pattern)/ is refused: \(error.message)" : nil
        }
        count("taken")
        guard program.instructions.count <= RulesLimits.regexInstructionsMax else { return "/\(pattern)/ is too large" }
        for _ in 0..<3 {
            let text = NaiveRegex.text(&random)
            let all = 1_000_000
            var steps = all
            let found = RegexMatcher.finds(program, in: text, steps: &steps)
            let wanted = NaiveRegex.finds(node, in: Array(text.unicodeScalars))
            if found != wanted {
                return "/\(pattern)/\(isCaseInsensitive ? "i" : "") on \(text): \(String(describing: found))"
            }
            count(wanted ? "found" : "not found")
            let stepsMax = (text.unicodeScalars.count + 2) * (program.instructions.count + 1)
            if all - steps > stepsMax { return "/\(pattern)/ on \(text) took \(all - steps) steps" }
        }
        return nil
    }

    static func regexSet(_ random: inout SplitMix, _ count: (String) -> Void) -> String? {
        func value(_ random: inout SplitMix) -> UInt32 {
            random.next() % 4 > 0 ? UInt32(random.next() % 0x100) : UInt32(random.next() % 0x110000)
        }
        let ranges = (0..<Int(random.next() % 6)).map { _ -> ClosedRange<UInt32> in
            let (first, second) = (value(&random), value(&random))
            return min(first, second)...max(first, second)
        }
        let (isNegated, isCaseInsensitive) = (random.next() % 2 == 0, random.next() % 2 == 0)
        let set = RegexSet(ranges, isNegated: isNegated, isCaseInsensitive: isCaseInsensitive)
        for _ in 0..<20 {
            let near = ranges.isEmpty ? 0 : random.pick(ranges).upperBound
            let asked = random.next() % 3 == 0 ? near + UInt32(random.next() % 2) : value(&random)
            guard let scalar = Unicode.Scalar(asked) else { continue }
            var cases = [asked]
            switch asked {
            case 0x41...0x5A where isCaseInsensitive: cases.append(asked + 0x20)
            case 0x61...0x7A where isCaseInsensitive: cases.append(asked - 0x20)
            default: break
            }
            let isIn = cases.contains { value in ranges.contains { $0.contains(value) } }
            count(isIn ? "in" : "out")
            if set.contains(scalar) != (isIn != isNegated) {
                return "\(asked) of \(ranges), \(isNegated), \(isCaseInsensitive)"
            }
        }
        return nil
    }

    // MARK: Expressions

    /// Random expressions match their definition; wrong ones are refused with the same message twice.
    static func expression(_ random: inout SplitMix, _ count: (String) -> Void) -> String? {
        let data = RandomExpression.tree(depth: 3, &random)
        let value = RandomExpression.tree(depth: 2, &random)
        let expression = RandomExpression.check(depth: 3, &random)
        let asking = Asking(auth: .user("b", ["level": 3, "name": "ab", "on": true]), data: data)
        let source = expression.source
        guard let found = try? asking.outcome(of: source, at: "/a/b", writing: value) else {
            count("refused")
            return nil
        }
        guard let before = try? TreeNode(json: data), let path = try? TreePath("/a/b"),
            let node = try? TreeNode(json: value)
        else { return "no tree" }
        let after = before.setting(node, at: path)
        let wanted = try? expression.value(NaiveWorld(before: before, after: after, keys: path.keys))
        let isSame = wanted.map { $0 == .bool(true) ? found == .true : found == .false } ?? found.isError
        count(found.isError ? "error" : "\(found)")
        return isSame ? nil : "\(source) is \(found), not \(String(describing: wanted)), over \(data) with \(value)"
    }

    /// Mutated expressions: either refused at a position, or equal to the form with brackets around every part.
    static func mutatedExpression(_ random: inout SplitMix, _ count: (String) -> Void) -> String? {
        let original = RandomExpression.check(depth: 3, &random).source
        let isNoise = random.next() % 20 == 0
        let text =
            isNoise
            ? FuzzMutation.noise(&random) : FuzzMutation.mutated(original, RandomExpression.pieces, &random)
        let source = RulesSource(text)
        let placed = RulesDocument.LocatedText(
            scalars: source.scalars, offsets: Array(source.scalars.indices), end: source.scalars.count)
        let parsed: RulesExpression
        do { parsed = try RulesExpressionParser.parse(placed) } catch {
            count("no expression")
            return isInside(error.offset, source) ? nil : "\(text): \(error)"
        }
        let wildcards = ["$a": 0, "$b": 1]
        var checker = RulesTypeChecker(rule: ".write", wildcards: wildcards)
        checker.checkRule(parsed)
        for fault in checker.faults where !isInside(fault.offset, source) { return "\(text): \(fault)" }
        let brackets = PrintedExpression.source(parsed)
        let again = RulesSource(brackets)
        let placedAgain = RulesDocument.LocatedText(
            scalars: again.scalars, offsets: Array(again.scalars.indices), end: again.scalars.count)
        let printed: RulesExpression
        do { printed = try RulesExpressionParser.parse(placedAgain) } catch {
            count("too deep")
            return error.message.contains("too deeply") ? nil : "\(text) as \(brackets): \(error)"
        }
        if PrintedExpression.source(printed) != brackets {
            return "\(text) as \(brackets) is \(PrintedExpression.source(printed))"
        }
        var second = RulesTypeChecker(rule: ".write", wildcards: wildcards)
        second.checkRule(printed)
        if second.faults.map(\.message).sorted() != checker.faults.map(\.message).sorted() {
            return "\(text) has \(checker.faults), in brackets \(second.faults)"
        }
        guard checker.faults.isEmpty else {
            count("wrong")
            return nil
        }
        count("right")
        let asking = Asking(
            auth: .user("b", ["level": 3, "name": "ab", "on": true]), data: RandomExpression.tree(depth: 3, &random))
        let value = RandomExpression.tree(depth: 2, &random)
        let outcomes = [text, brackets].map { try? asking.outcome(of: $0, at: "/a/b", writing: value) }
        return outcomes[0] != nil && outcomes[0] == outcomes[1] ? nil : "\(text): \(outcomes)"
    }

    private static func isInside(_ offset: Int, _ source: RulesSource) -> Bool {
        (0...source.scalars.count).contains(offset)
    }

    // MARK: Documents

    static func document(_ random: inout SplitMix, _ count: (String) -> Void) -> String? {
        let document = RandomDocument.document(&random)
        if random.next() % 2 == 0 { return rightDocument(document, count) }
        let isNoise = random.next() % 20 == 0
        let text =
            isNoise
            ? FuzzMutation.noise(&random)
            : FuzzMutation.mutated(RandomDocument.text(document), RandomDocument.pieces, &random)
        do {
            _ = try Rules.compile(text)
            count("right")
        } catch {
            count("wrong")
            for problem in error.problems where !isInside(problem, text) { return "\(text): \(problem)" }
            let places = error.problems.map { [$0.line, $0.column] }
            let sorted = places.sorted { $0.lexicographicallyPrecedes($1) }
            if places.isEmpty || places != sorted { return "\(text): \(error)" }
        }
        return isSame(text, text) ? nil : "\(text): compiled twice"
    }

    private static func rightDocument(_ document: JSONValue, _ count: (String) -> Void) -> String? {
        let text = RandomDocument.text(document)
        let escaped = RandomDocument.escaped(document)
        guard isSame(text, escaped) else { return "\(text) is not \(escaped)" }
        if let rules = try? Rules.compile(text) {
            count("right")
            guard let stored = try? Rules.compile(stored: text) else { return "\(text) is refused when stored" }
            return rules.rules.map(\.pattern) == stored.rules.map(\.pattern) ? nil : "\(text) is another when stored"
        }
        count("wrong")
        return nil
    }

    /// Whether both compile to the same rules, or have the same problems.
    private static func isSame(_ text: String, _ other: String) -> Bool {
        func content(_ text: String) -> [String] {
            do {
                let rules = try Rules.compile(text)
                return rules.rules.map { "\($0.pattern) \($0.kind) \($0.text)" } + rules.indexes.map { "\($0.target)" }
            } catch { return error.problems.map(\.message) }
        }
        return content(text) == content(other)
    }

    private static func isInside(_ problem: RulesProblem, _ text: String) -> Bool {
        let lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
        return (1...lines.count).contains(problem.line)
            && (1...lines[problem.line - 1].count + 1).contains(problem.column)
    }

    // MARK: Predicates

    static func predicate(_ random: inout SplitMix, _ count: (String) -> Void) -> String? {
        var text = RandomPredicate.condition(depth: 3, &random)
        switch random.next() % 10 {
        case 0: text = FuzzMutation.noise(&random)
        case 1...4: text = FuzzMutation.mutated(text, RandomPredicate.pieces, &random)
        default: break
        }
        let names = ["after", "before", "chat"]
        let predicate: RulesPredicate
        do { predicate = try RulesPredicate(text, names: names) } catch {
            count("refused")
            return isInside(error, text) ? nil : "\(text): \(error)"
        }
        var values: [String: JSONValue] = [:]
        for name in names { values[name] = RandomExpression.tree(depth: 2, &random) }
        let truth = predicate.truth(unknown: []) { values[$0] }
        count("\(truth)")
        if truth == .unknown { return "\(text) is not decided" }
        // A condition that does not hold with an unknown value does not hold with any. (One that holds may still fail
        // with some.)
        let unknown = Set(names.filter { _ in random.next() % 2 == 0 })
        let guess = predicate.truth(unknown: unknown) { unknown.contains($0) ? nil : values[$0] }
        if guess == .unknown { count("undecided") }
        if guess == .doesNotHold, truth == .holds { return "\(text) holds with \(values), not without \(unknown)" }
        // Values that it does not read do not matter.
        let read = Set(predicate.memberPaths.compactMap(\.first))
        let cut = predicate.truth(unknown: Set(names).subtracting(read)) { values[$0] }
        if cut != truth { return "\(text) reads more than \(read)" }
        return nil
    }
}
