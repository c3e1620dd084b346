import HatoModel

/// The first or the last of many children, which come in any order. It holds not many more than are wanted.
struct LimitSelection {
    private let limit: TreeQuery.Limit?
    private let bytesMax: Int
    private let countMax: Int
    private(set) var sortKeys: [SortKey] = []
    private var bytes = 0
    /// Beyond so many bytes, the children that are not wanted are dropped.
    private var bytesHeldMax: Int

    private static let surplusCount = 1_024
    private static let surplusBytes = 1 << 20

    /// - Parameters:
    ///   - limit: how many are wanted; nil: all.
    ///   - bytesMax: of the keys and sort values of those that are wanted.
    init(_ limit: TreeQuery.Limit?, bytesMax: Int) {
        self.limit = limit
        self.bytesMax = bytesMax
        // A limit set in code is not bounded like one from JSON.
        countMax = limit.map { 2 * min($0.count, 1 << 40) + Self.surplusCount } ?? .max
        bytesHeldMax = min(bytesMax, Self.surplusBytes)
    }

    var isEmpty: Bool { sortKeys.isEmpty }

    /// Throws `TreeError.tooBig` when those that are wanted exceed `bytesMax`.
    mutating func add(_ sortKey: SortKey) throws(TreeError) {
        sortKeys.append(sortKey)
        bytes += sortKey.textBytes
        if sortKeys.count >= countMax || bytes > bytesHeldMax { try drop() }
    }

    /// Those that are wanted, in ascending order. Throws `TreeError.tooBig` when they exceed `bytesMax`.
    mutating func inOrder() throws(TreeError) -> [SortKey] {
        try drop()
        return sortKeys
    }

    /// Drops those that are not wanted. Takes place each time as many came as stay, so it costs each child one sort.
    private mutating func drop() throws(TreeError) {
        sortKeys.sort()
        switch limit {
        case nil: break
        case .first(let count): sortKeys.removeLast(max(0, sortKeys.count - count))
        case .last(let count): sortKeys.removeFirst(max(0, sortKeys.count - count))
        }
        bytes = sortKeys.reduce(0) { $0 + $1.textBytes }
        if bytes > bytesMax { throw .tooBig(bytesMax: bytesMax) }
        let (twice, isEndless) = bytes.multipliedReportingOverflow(by: 2)
        bytesHeldMax = min(bytesMax, max(Self.surplusBytes, isEndless ? .max : twice))
    }
}

extension SortKey {
    /// UTF-8 bytes of the key and of a text it is sorted by: a result with this child has them too.
    var textBytes: Int {
        guard case .leaf(.string(let text)) = value else { return key.text.utf8.count }
        return key.text.utf8.count + text.utf8.count
    }
}
