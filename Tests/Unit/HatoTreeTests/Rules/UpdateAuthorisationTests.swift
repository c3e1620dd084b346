import HatoModel
import HatoRules
import HatoTesting
import Testing

@testable import HatoTree

/// An update of many paths is allowed exactly if each path is, by rules that see the whole tree after all of them:
/// random rules, trees and updates against a reference implementation on whole nodes.
@Suite struct UpdateAuthorisationTests {
    @Test func updateIsAllowedIfEachOfItsPlacesIs() throws {
        let seed = SeededRandom.seed()
        var random = RandomRules(random: SeededRandom(seed: seed))
        var (allowed, denied, several) = (0, 0, 0)
        for round in 0..<3_000 {
            let place = random.place(depth: 3)
            let rules = try Rules.compile(#"{"rules": \#(place.text)}"#)
            let tree = MemoryTree()
            let before = try TreeNode(json: random.value(depth: 3))
            try tree.set("/", before.export)
            let targets = try random.targets()
            let after = before.setting(targets)
            let stored = StoredData(tree.rows, codec: tree.codec)
            let situation = RulesContext(
                auth: .nobody, now: 0, before: stored, after: WrittenData(targets, over: stored))
            let verdict = try rules.authoriseWrite(targets, situation)
            let model = NaiveAuthoriser(rules: place, before: before, after: after)
            let expected = targets.allSatisfy { model.grants($0) } && targets.allSatisfy { model.isValid($0) }
            #expect(
                verdict.isAllowed == expected,
                """
                seed \(seed), round \(round): \(place.text) of \(before.export) with \
                \(targets.map { "\($0.path): \($0.node.export)" })
                """)
            // Each alone, but evaluated with all others: the same rules, whole trees.
            let whole = RulesContext(auth: .nobody, now: 0, before: before, after: after)
            let each = try targets.allSatisfy { try rules.authoriseWrite([$0], whole).isAllowed }
            #expect(verdict.isAllowed == each, "seed \(seed), round \(round)")
            if verdict.isAllowed { allowed += 1 } else { denied += 1 }
            if targets.count > 1, verdict.isAllowed { several += 1 }
        }
        // Both verdicts occur often.
        #expect(allowed > 300 && denied > 300 && several > 100)
    }
}

/// One node of the reference implementation of rules.
private final class RulesSnapshotModel {
    var write: Condition?
    var validate: Condition?
    var children: [String: RulesSnapshotModel] = [:]
    var wildcard: RulesSnapshotModel?

    var text: String { text(at: 0) }

    /// Wildcards have different names at each depth, as rules require.
    private func text(at depth: Int) -> String {
        var members: [String] = []
        if let write { members.append("\".write\": \"\(write.text)\"") }
        if let validate { members.append("\".validate\": \"\(validate.text)\"") }
        members += children.sorted { $0.key < $1.key }.map { "\"\($0.key)\": \($0.value.text(at: depth + 1))" }
        if let wildcard { members.append("\"$any\(depth)\": \(wildcard.text(at: depth + 1))") }
        return "{\(members.joined(separator: ", "))}"
    }

    func child(_ key: String) -> RulesSnapshotModel? { children[key] ?? wildcard }
}

private indirect enum Condition {
    enum Place: String, CaseIterable {
        case data, newData
    }

    case constant(Bool)
    case exists(Place, String)
    case isString(Place)
    case hasChildren(Place)
    case isOne(Place)
    case isNull(Place, String)
    case hasPriority(Place)
    case rootHas(String)
    case siblingWillBe(String)
    case not(Condition)
    case and(Condition, Condition)
    case or(Condition, Condition)

    var text: String {
        switch self {
        case .constant(let value): "\(value)"
        case .exists(let place, let path): "\(place).child('\(path)').exists()"
        case .isString(let place): "\(place).isString()"
        case .hasChildren(let place): "\(place).hasChildren()"
        case .isOne(let place): "\(place).val() == 1"
        case .isNull(let place, let path): "\(place).child('\(path)').val() == null"
        case .hasPriority(let place): "\(place).getPriority() != null"
        case .rootHas(let path): "root.child('\(path)').exists()"
        case .siblingWillBe(let key): "newData.parent().child('\(key)').exists()"
        case .not(let condition): "!(\(condition.text))"
        case .and(let left, let right): "(\(left.text)) && (\(right.text))"
        case .or(let left, let right): "(\(left.text)) || (\(right.text))"
        }
    }

    /// Nil: an evaluation error, so that the rule is false.
    func holds(at path: TreePath, _ before: TreeNode, _ after: TreeNode) -> Bool? {
        func node(_ place: Place) -> TreeNode { (place == .data ? before : after).node(at: path) }
        switch self {
        case .constant(let value): return value
        case .exists(let place, let inner): return (try? TreePath(inner)).map { !node(place).node(at: $0).isEmpty }
        case .isString(let place):
            if case .string? = node(place).leaf { return true }
            return false
        case .hasChildren(let place): return node(place).children != nil
        case .isOne(let place): return node(place).leaf == .number(1)
        case .isNull(let place, let inner): return (try? TreePath(inner)).map { node(place).node(at: $0).isEmpty }
        case .hasPriority(let place): return node(place).priority != nil
        case .rootHas(let inner): return (try? TreePath(inner)).map { !before.node(at: $0).isEmpty }
        case .siblingWillBe(let key):
            guard let parent = path.parent, let place = try? parent.child(TreeKey(key)) else { return nil }
            return !after.node(at: place).isEmpty
        case .not(let condition): return condition.holds(at: path, before, after).map { !$0 }
        case .and(let left, let right):
            guard let first = left.holds(at: path, before, after) else { return nil }
            return first ? right.holds(at: path, before, after) : false
        case .or(let left, let right):
            guard let first = left.holds(at: path, before, after) else { return nil }
            return first ? true : right.holds(at: path, before, after)
        }
    }
}

/// Spec §9.2 in the simplest way, on the trees before and after.
private struct NaiveAuthoriser {
    let rules: RulesSnapshotModel
    let before: TreeNode
    let after: TreeNode

    private func holds(_ condition: Condition, _ path: TreePath) -> Bool {
        condition.holds(at: path, before, after) ?? false
    }

    func grants(_ target: RulesTarget) -> Bool {
        var place: RulesSnapshotModel? = rules
        for depth in 0...target.path.depth {
            guard let here = place else { return false }
            if let write = here.write, holds(write, target.path.prefix(depth)) { return true }
            if depth < target.path.depth { place = here.child(target.path.keys[depth].text) }
        }
        return false
    }

    /// Every node on the way to the target and every node in it that exists after the write.
    func isValid(_ target: RulesTarget) -> Bool {
        var place: RulesSnapshotModel? = rules
        for depth in 0..<target.path.depth {
            guard let here = place else { return true }
            if !isMet(here, target.path.prefix(depth)) { return false }
            place = here.child(target.path.keys[depth].text)
        }
        guard let place else { return true }
        return target.path.isPriority ? isMet(place, target.path.node) : isValid(place, target.path)
    }

    private func isValid(_ place: RulesSnapshotModel, _ path: TreePath) -> Bool {
        guard isMet(place, path) else { return false }
        return (after.node(at: path).children ?? TreeChildren(sorted: [])).allSatisfy { child in
            guard let next = place.child(child.key.text), let path = try? path.child(child.key) else { return true }
            return isValid(next, path)
        }
    }

    private func isMet(_ place: RulesSnapshotModel, _ path: TreePath) -> Bool {
        guard let validate = place.validate, !after.node(at: path).isEmpty else { return true }
        return holds(validate, path)
    }
}

private struct RandomRules {
    var random: SeededRandom
    private static let keys = ["a", "b", "c", "1"]

    private mutating func key() -> String { Self.keys.randomElement(using: &random) ?? "a" }

    private mutating func chance(_ part: Int, in whole: Int) -> Bool {
        Int.random(in: 0..<whole, using: &random) < part
    }

    mutating func place(depth: Int) -> RulesSnapshotModel {
        let place = RulesSnapshotModel()
        if chance(2, in: 5) { place.write = condition(depth: 2) }
        if chance(1, in: 4) { place.validate = chance(1, in: 2) ? .not(condition(depth: 0)) : condition(depth: 2) }
        guard depth > 0 else { return place }
        for key in Self.keys where chance(1, in: 2) { place.children[key] = self.place(depth: depth - 1) }
        if chance(1, in: 2) { place.wildcard = self.place(depth: depth - 1) }
        return place
    }

    private mutating func condition(depth: Int) -> Condition {
        let place: Condition.Place = chance(2, in: 3) ? .newData : .data
        switch Int.random(in: 0..<(depth > 0 ? 14 : 9), using: &random) {
        case 0: return .constant(chance(3, in: 4))
        case 1: return .exists(place, chance(1, in: 2) ? key() : "\(key())/\(key())")
        case 2: return .isString(place)
        case 3: return .hasChildren(place)
        case 4: return .isOne(place)
        case 5: return .hasPriority(place)
        case 6: return .rootHas("\(key())/\(key())")
        case 7: return .siblingWillBe(key())
        case 8: return .isNull(place, ["", key(), "\(key())/\(key())"].randomElement(using: &random) ?? "")
        case 9: return .not(condition(depth: depth - 1))
        case 10, 11: return .and(condition(depth: depth - 1), condition(depth: depth - 1))
        default: return .or(condition(depth: depth - 1), condition(depth: depth - 1))
        }
    }

    mutating func value(depth: Int) -> JSONValue {
        if depth == 0 || chance(1, in: 4) {
            let leaf: JSONValue = [nil, true, 1, "x"].randomElement(using: &random) ?? nil
            return leaf.isNull || chance(4, in: 5) ? leaf : [".value": leaf, ".priority": 7]
        }
        var object = JSONObject()
        if chance(1, in: 5) { object[".priority"] = "p" }
        for key in Self.keys where chance(1, in: 2) { object[key] = value(depth: depth - 1) }
        return .object(object)
    }

    /// Some places, none at or above another.
    mutating func targets() throws -> [RulesTarget] {
        var targets: [RulesTarget] = []
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let isPriority = chance(1, in: 8)
            let keys = (0..<Int.random(in: 1...3, using: &random)).map { _ in key() }
            let path = try TreePath(keys.joined(separator: "/") + (isPriority ? "/.priority" : ""))
            let isApart = targets.allSatisfy { other in
                !other.path.node.isAtOrAbove(path.node) && !path.node.isAtOrAbove(other.path.node)
            }
            guard isApart else { continue }
            let node: TreeNode =
                if isPriority { chance(1, in: 2) ? .leaf(.number(2)) : .empty } else {
                    chance(1, in: 4) ? .empty : try TreeNode(json: value(depth: 2))
                }
            targets.append(RulesTarget(path: path, node: node))
        }
        return targets
    }
}
