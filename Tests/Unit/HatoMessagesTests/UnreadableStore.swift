import HatoStorage
import Synchronization
import TestStores

/// A memory store some rows of which cannot be read by transactions, as rows of a damaged block; the store goes on.
final class UnreadableStore: WrappedStore {
    private let memory: MemoryStore
    private let hidden = Mutex<[UInt8]?>(nil)

    init() throws { memory = try MemoryStore() }

    /// From now on, reading fails at keys with this text in them.
    func hide(_ text: String) { hidden.withLock { $0 = Array(text.utf8) } }

    fileprivate func check(_ key: [UInt8]) throws(StoreError) {
        guard let text = hidden.withLock({ $0 }), key.count >= text.count else { return }
        for start in 0...(key.count - text.count) where key[start..<(start + text.count)].elementsEqual(text) {
            throw .corrupted("a block")
        }
    }

    var store: any Store { memory }

    func submit(_ write: any StoreWrite) {
        memory.submit({ try write.write(in: UnreadableTransaction($0, self)) }) { result in
            write.ended(result.map(\.version))
        }
    }
}

private final class UnreadableTransaction: StoreTransaction {
    private let transaction: any StoreTransaction
    private let store: UnreadableStore

    init(_ transaction: any StoreTransaction, _ store: UnreadableStore) {
        self.transaction = transaction
        self.store = store
    }

    var nextVersion: UInt64 { transaction.nextVersion }
    var derived: (any StoreDerived)? { transaction.derived }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        try store.check(key.withUnsafeBufferPointer { Array($0) })
        return try transaction.get(key)
    }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        // Not the upper bound: what is known already ends a scan, and is not read.
        try store.check(range.lower)
        try transaction.scan(range, reverse: reverse) { key, value in
            try store.check(key.withUnsafeBufferPointer { Array($0) })
            return try visit(key, value)
        }
    }

    func setDerived(_ derived: any StoreDerived) { transaction.setDerived(derived) }
    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) { transaction.put(key, value) }
    func delete(_ key: Span<UInt8>) { transaction.delete(key) }
    func deleteRange(_ range: KeyRange) { transaction.deleteRange(range) }
    func take(_ rows: [any PreparedRows]) { transaction.take(rows) }
    func record(_ bytes: Span<UInt8>) { transaction.record(bytes) }
    func attach(_ note: any Sendable) { transaction.attach(note) }
}
