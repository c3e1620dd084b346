import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

struct TreeNodeDraftTests {
    /// Random nodes, set at random paths: the same as with `TreeNode.setting`.
    @Test func aDraftIsWhatSettingWouldHaveMade() throws {
        let seed = SeededRandom.seed()
        var random = RandomTree(random: SeededRandom(seed: seed))
        for round in 0..<300 {
            var node = try self.node(&random, depth: 2)
            var draft = TreeNodeDraft(node)
            for _ in 0..<30 {
                let keys = (0..<Int.random(in: 0...3, using: &random.random)).map { _ in random.key() }
                let path = TreePath(uncheckedKeys: keys, isPriority: random.random.chance(1, in: 4))
                let value = path.isPriority ? try priority(&random) : try self.node(&random, depth: 1)
                node = node.setting(value, at: path)
                draft.set(value, at: path)
                let summary = draft.summary(at: path)
                let expected = node.node(at: path)
                #expect(
                    summary.isEmpty == expected.isEmpty && summary.leaf == expected.leaf, "seed \(seed), round \(round)"
                )
                #expect(summary.priority == expected.priority, "seed \(seed), round \(round)")
            }
            #expect(draft.node == node, "seed \(seed), round \(round)")
        }
    }

    private func node(_ random: inout RandomTree, depth: Int) throws -> TreeNode {
        try TreeNode(json: random.value(depth: depth), at: .root, serverValues: TimestampSource(now: 0))
    }

    private func priority(_ random: inout RandomTree) throws -> TreeNode {
        let json = random.priority()
        return json.isNull ? .empty : try TreeNode(json: json, at: .root, serverValues: TimestampSource(now: 0))
    }
}
