import HatoModel

/// Turns a parsed rules document into rules and collects all problems instead of stopping at the first.
struct RulesCompiler {
    /// Whether the text was accepted before: then it is not refused for what older versions accepted.
    private let isStored: Bool
    private(set) var faults: [RulesFault] = []
    private(set) var indexes: [RulesIndex] = []
    /// Every rule, in the order of the text.
    private(set) var rules: [RulesRule] = []
    /// Counts of the work: tests check that it grows with the text only.
    private(set) var work = RulesCompilerWork()

    init(isStored: Bool = false) { self.isStored = isStored }

    private static let badKey = "String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\""

    /// The context of a node in the document.
    private struct Scope {
        var segments: [RulesIndex.Segment] = []
        /// `$name` to the index of its key in the path.
        var wildcards: [String: Int] = [:]
        /// Nil: the root.
        var pattern: RulesPattern?

        func below(_ segment: RulesIndex.Segment) -> Scope {
            var scope = self
            switch segment {
            case .key(let key): scope.pattern = RulesPattern(key.text, below: pattern)
            case .wildcard(let name, _):
                // An inner wildcard hides an outer one of the same name.
                scope.wildcards[name] = segments.count
                scope.pattern = RulesPattern(name, below: pattern)
            }
            scope.segments.append(segment)
            return scope
        }
    }

    mutating func compile(_ document: RulesDocument.Value) throws(RulesFault) -> RulesNode {
        guard case .object(let members) = document.kind else {
            throw RulesFault(offset: document.offset, message: "Expected '{'.")
        }
        for member in members where member.name != "rules" {
            fault(member.offset, "Only 'rules' is allowed at the top of the document, not '\(member.name)'.")
        }
        guard let rules = members.first(where: { $0.name == "rules" }) else {
            throw faults.first ?? RulesFault(offset: document.offset, message: "Expected 'rules' property.")
        }
        return node(rules.value, Scope())
    }

    private mutating func fault(_ offset: Int, _ message: String) {
        add([RulesFault(offset: offset, message: message)])
    }

    private mutating func add(_ more: [RulesFault]) {
        faults += more.prefix(RulesLimits.problemsMax - faults.count)
    }

    private mutating func node(_ value: RulesDocument.Value, _ scope: Scope) -> RulesNode {
        guard case .object(let members) = value.kind else {
            fault(value.offset, "Expected '{'.")
            return RulesNode()
        }
        guard scope.segments.count <= TreeLimits.depthMax else {
            fault(value.offset, "Rules are nested more than \(TreeLimits.depthMax) keys deep.")
            return RulesNode()
        }
        let literalNames = Set(members.compactMap { try? TreeKey($0.name) })
        var literals: [TreeKey: RulesNode] = [:]
        var wildcard: (name: String, node: RulesNode)?
        var node = RulesNode.Rules()
        for member in members {
            switch member.name {
            case ".read": node.read = condition(member, .read, scope)
            case ".write": node.write = condition(member, .write, scope)
            case ".validate": node.validate = condition(member, .validate, scope)
            case ".indexOn": index(member.value, scope)
            case let name where name.hasPrefix("$"):
                if scope.wildcards[name] != nil, !isStored {
                    fault(
                        member.offset,
                        "The wildcard '\(Self.quoted(name))' is declared above already; a path has each name once.")
                }
                let child = self.child(member, scope.below(.wildcard(name, except: literalNames)))
                if let wildcard {
                    let (first, second) = (Self.quoted(wildcard.name), Self.quoted(name))
                    fault(member.offset, "Cannot have multiple default rules ('\(first)' and '\(second)').")
                } else {
                    wildcard = (name, child)
                }
            default:
                let key = TreeKey(unchecked: member.name)
                literals[key] = child(member, scope.below(.key(key)))
            }
        }
        return RulesNode(literals: literals, wildcard: wildcard?.node, rules: node)
    }

    private static func quoted(_ name: String) -> String {
        let scalars = name.unicodeScalars
        guard
            let end = scalars.index(
                scalars.startIndex, offsetBy: RulesLimits.quotedNameMax, limitedBy: scalars.endIndex),
            end < scalars.endIndex
        else { return name }
        return String(scalars[..<end]) + "…"
    }

    private mutating func child(_ member: RulesDocument.Member, _ scope: Scope) -> RulesNode {
        let isWildcard = member.name.hasPrefix("$")
        let isNamed =
            isWildcard && member.name.unicodeScalars.count > 1
            && member.name.unicodeScalars.dropFirst().allSatisfy { $0 != "$" && RulesLexer.isNameScalar($0) }
        if case .object = member.value.kind, !isNamed, isWildcard || TreeKey.problem(member.name) != nil {
            fault(member.offset, Self.badKey)
        }
        return node(member.value, scope)
    }

    /// The rule of a `.read`, `.write` or `.validate`; nil when `faults` has its problems.
    private mutating func condition(
        _ member: RulesDocument.Member, _ kind: RulesRule.Kind, _ scope: Scope
    ) -> RulesRule? {
        guard let (text, expression) = expression(member) else { return nil }
        var checker = RulesTypeChecker(rule: member.name, wildcards: scope.wildcards, isStored: isStored)
        checker.checkRule(expression)
        add(checker.faults)
        guard checker.faults.isEmpty else { return nil }
        let count = expression.count
        work.expressions += count
        for program in checker.programs.values { work.regexInstructions += program.instructions.count }
        guard isStored || work.regexInstructions <= RulesLimits.documentRegexInstructionsMax else {
            fault(
                text.offset(0),
                "The regular expressions of these rules are too large together (the maximum is "
                    + "\(RulesLimits.documentRegexInstructionsMax) instructions).")
            return nil
        }
        let test = RulesLowering(wildcards: scope.wildcards, programs: checker.programs).test(expression)
        let rule = RulesRule(kind, id: rules.count, at: scope.pattern, (text, test, count))
        rules.append(rule)
        return rule
    }

    private mutating func expression(
        _ member: RulesDocument.Member
    ) -> (RulesDocument.LocatedText, RulesExpression)? {
        let text: RulesDocument.LocatedText
        switch member.value.kind {
        case .bool(let value): text = RulesDocument.LocatedText(constant: value, at: member.value.offset)
        case .string(let string): text = string
        case .object, .array, .number, .null:
            fault(
                member.value.offset, "Invalid rule expression.  Expected 'true', 'false', or an expression string.")
            return nil
        }
        do { return (text, try RulesExpressionParser.parse(text)) } catch {
            add([error])
            return nil
        }
    }

    private mutating func index(_ value: RulesDocument.Value, _ scope: Scope) {
        let texts: [RulesDocument.Value]
        switch value.kind {
        case .string: texts = [value]
        case .array(let elements): texts = elements
        case .object, .number, .bool, .null: texts = []
        }
        let wrong = "Invalid indexOn expression. Must be either a string or an array of strings"
        var isArrayOrString = true
        if case .array = value.kind {} else if texts.isEmpty { isArrayOrString = false }
        guard isArrayOrString else { return fault(value.offset, wrong) }
        // No other node has the same pattern, so duplicates can only be declared here.
        var targets: Set<RulesIndex.Target> = []
        for element in texts {
            guard case .string(let text) = element.kind else {
                fault(element.offset, wrong)
                continue
            }
            switch text.text {
            case ".value":
                if targets.insert(.value).inserted { add(.value, scope) }
            case ".key", ".priority":
                break  // these orders need no index
            case let name:
                guard let path = try? TreePath(name), !path.isPriority, !path.isRoot else {
                    fault(element.offset, Self.badKey)
                    continue
                }
                if targets.insert(.child(path)).inserted { add(.child(path), scope) }
            }
        }
    }

    private mutating func add(_ target: RulesIndex.Target, _ scope: Scope) {
        indexes.append(RulesIndex(segments: scope.segments, target: target))
    }
}

/// The work that a document caused.
struct RulesCompilerWork {
    /// Expressions that were checked and turned into closures.
    var expressions = 0
    var regexInstructions = 0
}
