public import HatoModel

/// One read of data by rules: an earlier verdict holds as long as none of these changed.
public struct RulesRead: Sendable, Hashable {
    /// The part of a node that was read.
    public enum Aspect: Sendable, Hashable, CaseIterable {
        /// The primitive, or that there is none because of children.
        case value
        /// Whether the node exists.
        case existence
        /// Whether the node has children.
        case children
        case priority
    }

    /// The node.
    public var path: TreePath
    /// The part that was read.
    public var aspect: Aspect

    public init(path: TreePath, aspect: Aspect) {
        self.path = path
        self.aspect = aspect
    }
}

/// All reads of stored data by an evaluation. Values that a write contains are not included.
public struct RulesReadSet: Sendable {
    /// All reads except that of the time.
    public private(set) var reads: Set<RulesRead> = []
    /// Whether more was read than `max` entries: then every change may affect the verdict.
    public private(set) var isOverflowing = false
    /// Whether the time was read: then a verdict may change without any write.
    public private(set) var readsTime = false

    private let max: Int

    /// - Parameter max: the number of reads that are kept individually.
    public init(max: Int = RulesLimits.readsMax) { self.max = max }

    /// Records that the time was read.
    public mutating func insertTime() { readsTime = true }

    /// Records a read.
    public mutating func insert(_ read: RulesRead) {
        guard !isOverflowing else { return }
        reads.insert(read)
        guard reads.count > max else { return }
        reads = []
        isOverflowing = true
    }
}
