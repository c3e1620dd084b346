import Dispatch
import Foundation
import HatoRocksDB
import HatoStorage
import HatoTesting
import Synchronization
import Testing

/// The implementations on which the tests of the contract run.
enum StoreWorld: CaseIterable, CustomTestStringConvertible {
    case memory
    case rocksDB
    /// Every write becomes durable on the other thread, while the next ones are planned.
    case rocksDBOverlapping

    /// The implementations where writes that wait together are one group.
    static let grouping = [memory, rocksDB]

    var testDescription: String {
        switch self {
        case .memory: "memory"
        case .rocksDB: "RocksDB"
        case .rocksDBOverlapping: "RocksDB, overlapping"
        }
    }

    /// Opens an empty store for one test and closes it afterwards.
    func withStore(
        _ limits: StoreLimits = StoreLimits(), _ body: (any Store, TemporaryFolder) async throws -> Void
    ) async throws {
        try await TemporaryFolder.with { folder in
            let store = try open(folder, limits)
            defer { store.close() }
            try await body(store, folder)
        }
    }

    func open(_ folder: TemporaryFolder, _ limits: StoreLimits = StoreLimits()) throws -> any Store {
        var limits = limits
        // What is in one group does not depend on how busy the machine is.
        limits.groupMicrosecondsMax = .max
        switch self {
        case .memory: return try MemoryStore(limits: limits)
        case .rocksDB, .rocksDBOverlapping:
            var options = RocksDBOptions.small
            options.limits = limits
            if self == .rocksDBOverlapping { options.limits.overlapWritesMin = 1 }
            return try RocksDBStore.open(folder: folder.path("store"), options: options)
        }
    }

    func open(backup: String) throws -> any Store {
        switch self {
        case .memory: try MemoryStore(restoring: backup)
        case .rocksDB, .rocksDBOverlapping: try RocksDBStore.open(folder: backup, options: .small)
        }
    }
}

extension RocksDBOptions {
    /// With little memory: tests open many stores at once.
    static var small: RocksDBOptions {
        var options = RocksDBOptions()
        options.memory = RocksDBMemory(blockCacheBytes: 4 << 20, memtableBytes: 8 << 20)
        // What is in one group does not depend on how busy the machine is.
        options.limits.groupMicrosecondsMax = .max
        return options
    }
}

/// A folder that is removed after its test.
struct TemporaryFolder: Sendable {
    let path: String

    static func with(_ body: (TemporaryFolder) async throws -> Void) async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("hato-store-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await body(TemporaryFolder(path: path))
    }

    func path(_ name: String) -> String { path + "/" + name }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

extension StoreReading {
    func text(_ key: String) throws -> String? {
        try get(HatoStorageTests.bytes(key)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Every row of the range as `key=value`.
    func rows(_ range: KeyRange = .all, reverse: Bool = false) throws -> [String] {
        var rows: [String] = []
        try scan(range, reverse: reverse) { key, value in
            rows.append("\(string(key))=\(string(value))")
            return .next
        }
        return rows
    }
}

func string(_ bytes: Span<UInt8>) -> String {
    bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
}

extension StoreTransaction {
    func put(_ key: String, _ value: String) { put(HatoStorageTests.bytes(key), HatoStorageTests.bytes(value)) }
}

extension Store {
    @discardableResult
    func put(_ rows: [String: String], record: String? = nil) async throws -> UInt64 {
        try await write { transaction in
            for (key, value) in rows { transaction.put(key, value) }
            if let record { transaction.record(HatoStorageTests.bytes(record)) }
        }.version
    }
}

/// Values that other threads add while a test waits for them.
final class Collected<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    func append(_ element: Element) { elements.withLock { $0.append(element) } }
    var all: [Element] { elements.withLock { $0 } }

    /// Waits until there are `count`, or until four minutes have passed.
    func first(_ count: Int) async throws -> [Element] {
        try await eventually("\(count) elements") { all.count >= count }
        return all
    }
}

/// Blocks the writer's thread until the test opens it, so that writes submitted meanwhile wait together.
final class Gate: Sendable {
    private let opening = DispatchSemaphore(value: 0)
    private let isReached = Atomic<Bool>(false)
    private let isRefused = Atomic<Bool>(false)

    /// Throws when the store has ended.
    init(holding store: any Store) async throws {
        store.submit(
            { [self] _ in
                isReached.store(true, ordering: .releasing)
                _ = opening.wait(timeout: .now() + 240)
            },
            completion: { [self] result in
                if case .failure = result { isRefused.store(true, ordering: .releasing) }
            })
        try await eventually("the writer is held") {
            isReached.load(ordering: .acquiring) || isRefused.load(ordering: .acquiring)
        }
        if !isReached.load(ordering: .acquiring) { throw StoreError.closed(cause: nil) }
    }

    func open() { opening.signal() }
}
