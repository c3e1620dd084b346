/// A named part of the memory that a service may use (`memory-bytes`).
public struct MemoryShare: Sendable, Hashable {
    /// The number of parts of all shares together.
    public static let partsOfAll = 24

    /// The name of the part in the settings.
    public var name: String
    /// Its size, in parts of `partsOfAll`.
    public var parts: Int

    /// Received lines, requests, running reads, and responses and events that peers have not received.
    public static let requests = MemoryShare(name: "requests", parts: 8)
    /// Of requests: events that peers have not received.
    public static let events = MemoryShare(name: "events", parts: 4)
    /// Blocks, indexes and filters of tables.
    public static let blockCache = MemoryShare(name: "block cache", parts: 4)
    /// Rows and change records that are not in a table yet.
    public static let memtables = MemoryShare(name: "memtables", parts: 2)
    /// Memtables that are being flushed while the next ones fill.
    public static let flushes = MemoryShare(name: "flushes", parts: 2)
    /// Memory of a service besides requests: listeners and the writes that connections leave for their end (messages),
    /// passwords that are being hashed (auth).
    public static let held = MemoryShare(name: "held", parts: 4)
    /// Of what is held: listeners.
    public static let listeners = MemoryShare(name: "listeners", parts: 3)
    /// Of what is held: writes that connections leave for their end.
    public static let onDisconnect = MemoryShare(name: "onDisconnect", parts: 1)
    /// Everything else: code, connections, caches of planning, memory that the allocator has not returned.
    public static let process = MemoryShare(name: "process", parts: 4)

    /// All parts that are in no other.
    public static let all = [requests, blockCache, memtables, flushes, held, process]
}

/// Divides the memory that a service may use among its consumers. Pure.
///
/// 1.5 GiB give 512 MiB for requests, 256 MiB for the block cache, 128 MiB for memtables and as much for memtables that
/// are being flushed, 256 MiB for `held`, and 256 MiB for everything else.
public struct MemoryPlan: Sendable, Hashable {
    /// The value of `memory-bytes`.
    public let bytes: Int

    /// - Parameter bytes: more than 0.
    public init(bytes: Int) { self.bytes = max(0, bytes) }

    /// The bytes of a share.
    public func bytes(of share: MemoryShare) -> Int {
        // Divides first: the product with a value from the settings may overflow.
        let part = bytes / MemoryShare.partsOfAll
        let rest = bytes % MemoryShare.partsOfAll
        return part * share.parts + rest * share.parts / MemoryShare.partsOfAll
    }

    /// The lowest value of `memory-bytes` whose `share` has at least `wanted` bytes.
    public static func least(with wanted: Int, of share: MemoryShare) -> Int {
        let (whole, rest) = wanted.quotientAndRemainder(dividingBy: share.parts)
        let (product, overflow) = whole.multipliedReportingOverflow(by: MemoryShare.partsOfAll)
        guard !overflow else { return .max }
        let extra = (rest * MemoryShare.partsOfAll + share.parts - 1) / share.parts
        let (sum, isTooLarge) = product.addingReportingOverflow(extra)
        return isTooLarge ? .max : sum
    }
}

/// How the default of a setting is derived from `memory-bytes`.
public struct MemoryDerivation: Sendable, Hashable {
    /// The share of the memory that the setting belongs to.
    public var share: MemoryShare
    /// The setting's value is the share divided by this.
    public var divisor: Int
    /// The minimum of the derived value, whatever the memory.
    public var valueMin: Int
    /// The maximum of the derived value; nil: none.
    public var valueMax: Int?

    /// - Parameters:
    ///   - divisor: more than 0: the fraction of a share, or the bytes of one of the things that the setting counts.
    ///   - valueMin: with less, the service could not do what it promises.
    public init(
        _ share: MemoryShare, dividedBy divisor: Int = 1, atLeast valueMin: Int = 1, atMost valueMax: Int? = nil
    ) {
        self.share = share
        self.divisor = max(1, divisor)
        self.valueMin = max(1, valueMin)
        self.valueMax = valueMax
    }

    /// E.g. `1/12 of memory-bytes`.
    var summary: String {
        let (of, by) = (share.parts, MemoryShare.partsOfAll * divisor)
        let bounds = (valueMin > 1 ? ", at least \(valueMin)" : "") + (valueMax.map { ", at most \($0)" } ?? "")
        return by % of == 0 ? "1/\(by / of) of memory-bytes\(bounds)" : "\(of)/\(by) of memory-bytes\(bounds)"
    }

    /// At least `valueMin`.
    public func value(in plan: MemoryPlan) -> Int {
        let value = max(valueMin, plan.bytes(of: share) / divisor)
        return valueMax.map { min($0, value) } ?? value
    }
}
