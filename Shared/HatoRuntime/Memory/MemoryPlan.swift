/// A named part of the memory that a service may use (`memory-bytes`).
public struct MemoryShare: Sendable, Hashable {
    /// All shares together have so many parts.
    public static let partsOfAll = 24

    /// The name of the part in the settings.
    public var name: String
    /// Its size, in parts of `partsOfAll`.
    public var parts: Int

    /// Lines that are read, requests, reads under way, responses and events that peers have not taken.
    public static let requests = MemoryShare(name: "requests", parts: 8)
    /// Blocks, indexes and filters of tables.
    public static let blockCache = MemoryShare(name: "block cache", parts: 4)
    /// Rows and change records that are in no table yet.
    public static let memtables = MemoryShare(name: "memtables", parts: 2)
    /// Memtables that are being written out while the next ones fill.
    public static let flushes = MemoryShare(name: "flushes", parts: 2)
    /// What a service holds beside requests: what connections leave to be written when they end (messages), passwords
    /// that are being hashed (auth).
    public static let held = MemoryShare(name: "held", parts: 4)
    /// Everything else: code, connections, listeners, caches of planning, what the allocator has not given back.
    public static let process = MemoryShare(name: "process", parts: 4)

    /// All parts.
    public static let all = [requests, blockCache, memtables, flushes, held, process]
}

/// Divides the memory that a service may use among what uses it. Pure.
///
/// 1.5 GiB give 512 MiB of requests, 256 MiB of block cache, 128 MiB of memtables and as many that are written out,
/// 256 MiB that are held, and 256 MiB for everything else.
public struct MemoryPlan: Sendable, Hashable {
    /// The value of `memory-bytes`.
    public let bytes: Int

    /// - Parameter bytes: more than 0.
    public init(bytes: Int) { self.bytes = max(0, bytes) }

    /// The bytes of a share.
    public func bytes(of share: MemoryShare) -> Int {
        // Divided first: the product of what a setting says may be too large.
        let part = bytes / MemoryShare.partsOfAll
        let rest = bytes % MemoryShare.partsOfAll
        return part * share.parts + rest * share.parts / MemoryShare.partsOfAll
    }

    /// The least bytes in all whose `share` has at least `wanted`.
    public static func least(with wanted: Int, of share: MemoryShare) -> Int {
        let (whole, rest) = wanted.quotientAndRemainder(dividingBy: share.parts)
        let (product, overflow) = whole.multipliedReportingOverflow(by: MemoryShare.partsOfAll)
        guard !overflow else { return .max }
        let extra = (rest * MemoryShare.partsOfAll + share.parts - 1) / share.parts
        let (sum, isTooLarge) = product.addingReportingOverflow(extra)
        return isTooLarge ? .max : sum
    }
}

/// How a setting follows from `memory-bytes` unless it is set itself.
public struct MemoryDerivation: Sendable, Hashable {
    /// The part of the memory that belongs to it.
    public var share: MemoryShare
    /// The setting's value is the share divided by this.
    public var divisor: Int
    /// The highest value that is derived; nil: any.
    public var valueMax: Int?

    /// - Parameter divisor: more than 0: the part of a share, or the bytes of one of what the setting counts.
    public init(_ share: MemoryShare, dividedBy divisor: Int = 1, atMost valueMax: Int? = nil) {
        self.share = share
        self.divisor = max(1, divisor)
        self.valueMax = valueMax
    }

    /// E.g. `1/12 of memory-bytes`.
    var summary: String {
        let (of, by) = (share.parts, MemoryShare.partsOfAll * divisor)
        let highest = valueMax.map { ", at most \($0)" } ?? ""
        return by % of == 0 ? "1/\(by / of) of memory-bytes\(highest)" : "\(of)/\(by) of memory-bytes\(highest)"
    }

    /// At least 1.
    public func value(in plan: MemoryPlan) -> Int {
        let value = max(1, plan.bytes(of: share) / divisor)
        return valueMax.map { min($0, value) } ?? value
    }
}
