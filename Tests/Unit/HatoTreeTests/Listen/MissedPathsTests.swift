import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

/// The changes of several commits as one event.
@Suite struct MissedPathsTests {
    /// A JSON reader may return the members of a patch in another order than they were written.
    @Test func mergedPatchLeadsToTheTreeInAnyOrder() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        var patches = 0
        for round in 0..<3_000 {
            let tree = MemoryTree()
            let path = try TreePath(random.pick(["/", "/a", "/a/b"]))
            for _ in 0..<4 { try tree.apply(Self.mutation(&random)) }
            let before = try tree.nodes.node(at: path)
            var changes = ChangedPaths(of: path, after: 0)
            for version in 1...random.pick([1, 2, 3, 5] as [UInt64]) {
                changes.add(try tree.apply(Self.mutation(&random)).changes, at: version)
            }
            let after = try tree.nodes.node(at: path)
            let members: [(path: TreePath, node: TreeNode)]
            if changes.missing(after: 0) == .everything { continue }
            switch try changes.paths(from: 1).update(reading: tree.nodes) {
            case .fresh: continue
            case .nothing: members = []
            case .events(let events):
                #expect(events.count == 1)
                switch try #require(events.first) {
                case .put(let place, let node): members = [(path: place, node: node)]
                case .patch(let places):
                    members = places
                    patches += 1
                }
            }
            for (index, member) in members.enumerated() {
                for (other, lower) in members.enumerated() where other != index {
                    #expect(!member.path.isAtOrAbove(lower.path), "seed \(seed), round \(round)")
                }
            }
            for _ in 0..<6 {
                var node = before
                for member in members.shuffled(using: &random) { node = node.setting(member.node, at: member.path) }
                #expect(node == after, "seed \(seed), round \(round): \(members)")
            }
        }
        #expect(patches > 300, "seed \(seed)")
    }

    /// Few keys, so that writes collide; many priorities, and nodes that lose a child and get another.
    private static func mutation(_ random: inout SeededRandom) throws -> Mutation {
        let values: [JSONValue] = [1, 2, ["a": 1], ["b": ["c": 2], ".priority": 3], [".value": 4, ".priority": 5]]
        switch random.pick([0, 0, 1, 2, 3, 3, 3]) {
        case 0: return .set(random.pick(values), at: try path(1...4, &random))
        case 1: return .remove(at: try path(2...4, &random))
        case 2: return .setPriority(random.pick([1, 2, .null]), at: try path(0...3, &random))
        default:
            var members = JSONObject()
            for key in ["a", "b", "c"] where random.chance(2, in: 3) {
                members[key] = random.chance(1, in: 2) ? .null : random.pick(values)
            }
            if random.chance(1, in: 5) { members[".priority"] = random.pick([6, 7, .null]) }
            return .update(members, at: try path(0...3, &random))
        }
    }

    private static func path(_ depths: ClosedRange<Int>, _ random: inout SeededRandom) throws -> TreePath {
        var keys: [String] = []
        for _ in 0..<Int.random(in: depths, using: &random) { keys.append(random.pick(["a", "b", "c"])) }
        return try TreePath(keys.joined(separator: "/"))
    }
}
