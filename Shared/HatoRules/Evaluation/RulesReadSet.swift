public import HatoModel

/// One thing that rules looked at: an answer given before holds as long as none of these changed.
public struct RulesRead: Sendable, Hashable {
    /// What of a node was read.
    public enum Aspect: Sendable, Hashable, CaseIterable {
        /// The primitive, or that there is none because of children.
        case value
        /// Whether there is anything.
        case existence
        /// Whether there is an object.
        case children
        case priority
    }

    /// The node.
    public var path: TreePath
    /// What of it was read.
    public var aspect: Aspect

    public init(path: TreePath, aspect: Aspect) {
        self.path = path
        self.aspect = aspect
    }
}

/// All that an evaluation looked at in the data. What a write brings with it is not data.
public struct RulesReadSet: Sendable {
    /// All reads but that of the time.
    public private(set) var reads: Set<RulesRead> = []
    /// More was read than is named here: then every change may matter.
    public private(set) var isOverflowing = false
    /// Whether the time was looked at: then an answer may end without any change.
    public private(set) var readsTime = false

    private let max: Int

    /// - Parameter max: of how many reads it keeps the names.
    public init(max: Int = RulesLimits.readsMax) { self.max = max }

    /// Notes that the time was read.
    public mutating func insertTime() { readsTime = true }

    /// Notes a read.
    public mutating func insert(_ read: RulesRead) {
        guard !isOverflowing else { return }
        reads.insert(read)
        guard reads.count > max else { return }
        reads = []
        isOverflowing = true
    }
}
