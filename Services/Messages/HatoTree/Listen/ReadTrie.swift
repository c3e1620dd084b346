import HatoModel
public import HatoRules

/// Finds the verdicts of rules that a change may have invalidated, by the paths they read.
///
/// The cost grows with the depth of the change and with the verdicts found. Equal reads of a thousand verdicts at one
/// path are checked once: a message in a chat does not affect verdicts that only read whether the chat exists.
/// is there.
public struct ReadTrie<ID: Hashable & Sendable>: Sendable {
    private var trie = PathTrie<[RulesRead.Aspect: Set<ID>]>()
    /// Identifiers with too many reads to list: every change may affect them.
    private var unnamed: Set<ID> = []

    public init() {}

    /// Adds the reads of an identifier.
    public mutating func insert(_ id: ID, _ reads: RulesReadSet) {
        if reads.isOverflowing { unnamed.insert(id) }
        for read in reads.reads {
            trie.change(at: read.path) { kept in
                var all = kept.take() ?? [:]
                all[read.aspect, default: []].insert(id)
                kept = all
            }
        }
    }

    /// Removes the reads of an identifier.
    public mutating func remove(_ id: ID, _ reads: RulesReadSet) {
        unnamed.remove(id)
        for read in reads.reads {
            trie.change(at: read.path) { kept in
                guard var all = kept.take() else { return }
                all[read.aspect]?.remove(id)
                if all[read.aspect]?.isEmpty == true { all[read.aspect] = nil }
                kept = all.isEmpty ? nil : all
            }
        }
    }

    /// The identifiers for which `RulesReadSet.isTouched` is true.
    public func touched(by changes: [PathChange]) -> Set<ID> {
        guard !changes.isEmpty else { return [] }
        var touched = unnamed
        for change in changes {
            func add(_ kept: [RulesRead.Aspect: Set<ID>], at depth: Int) {
                for (aspect, readers) in kept where aspect.isTouched(at: depth, by: change) {
                    touched.formUnion(readers)
                }
            }
            let depth = change.path.depth
            trie.visit(change.path) {
                add($1, at: $0)
            } atOrBelow: { isBelow, kept in
                add(kept, at: isBelow ? depth + 1 : depth)
            }
        }
        return touched
    }
}
