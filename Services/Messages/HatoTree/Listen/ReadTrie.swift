import HatoModel
public import HatoRules

/// Finds the answers of rules that a change may have made wrong, by the places they were read from.
///
/// The cost grows with the depth of the change and with the answers found. What a thousand answers looked at in the
/// same way at the same place is asked about once: a message in a chat does not touch those who looked whether the chat
/// is there.
public struct ReadTrie<ID: Hashable & Sendable>: Sendable {
    private var places = PathTrie<[RulesRead.Aspect: Set<ID>]>()
    /// Whose reads are too many to be named: every change may matter to them.
    private var unnamed: Set<ID> = []

    public init() {}

    /// Adds what an identifier depends on.
    public mutating func insert(_ id: ID, _ reads: RulesReadSet) {
        if reads.isOverflowing { unnamed.insert(id) }
        for read in reads.reads {
            places.change(at: read.path) { kept in
                var all = kept.take() ?? [:]
                all[read.aspect, default: []].insert(id)
                kept = all
            }
        }
    }

    /// Removes what an identifier depends on.
    public mutating func remove(_ id: ID, _ reads: RulesReadSet) {
        unnamed.remove(id)
        for read in reads.reads {
            places.change(at: read.path) { kept in
                guard var all = kept.take() else { return }
                all[read.aspect]?.remove(id)
                if all[read.aspect]?.isEmpty == true { all[read.aspect] = nil }
                kept = all.isEmpty ? nil : all
            }
        }
    }

    /// Those for whom `RulesReadSet.isTouched` holds.
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
            places.visit(change.path) {
                add($1, at: $0)
            } atOrBelow: { isBelow, kept in
                add(kept, at: isBelow ? depth + 1 : depth)
            }
        }
        return touched
    }
}
