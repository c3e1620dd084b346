import HatoStorage
import HatoTree

/// The tree's view of a snapshot or a transaction.
///
/// A class: it goes through many hands, and most want any reader.
final class StoreTreeReader: TreeReader {
    let reading: any StoreReading

    init(_ reading: any StoreReading) { self.reading = reading }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? { try reading.get(key) }

    func scan(
        lower: [UInt8], upper: [UInt8]?, reverse: Bool,
        _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> TreeScanStep
    ) throws {
        try reading.scan(KeyRange(lower: lower, upper: upper), reverse: reverse) { key, value in
            switch try visit(key, value) {
            case .next: .next
            case .stop: .stop
            case .seek(let key): .seek(key)
            }
        }
    }
}

/// Where the rows of a plan go.
struct StoreRows: RowTarget {
    let target: any StoreWriting

    init(_ target: any StoreWriting) { self.target = target }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) { target.put(key, value) }

    func delete(_ key: Span<UInt8>) { target.delete(key) }

    func deleteRange(_ lower: Span<UInt8>, _ upper: Span<UInt8>) {
        let lower = lower.withUnsafeBufferPointer { Array($0) }
        let upper = upper.withUnsafeBufferPointer { Array($0) }
        target.deleteRange(KeyRange(lower: lower, upper: upper.isEmpty ? nil : upper))
    }
}
