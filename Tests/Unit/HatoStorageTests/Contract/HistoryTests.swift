import HatoStorage
import HatoTesting
import Testing

@Suite("Random histories")
struct HistoryTests {
    /// Random transactions on a store and on a plain dictionary: both are equal at the end, and at every snapshot taken
    /// in between.
    @Test(arguments: StoreWorld.allCases, [1, 2, 3] as [UInt64])
    func aRandomHistoryEqualsThatOfADictionary(world: StoreWorld, seed: UInt64) async throws {
        try await world.withStore { store, _ in
            var random = SeededRandom(seed: seed)
            var model: [[UInt8]: [UInt8]] = [:]
            var kept: [(any StoreSnapshot, [[UInt8]: [UInt8]])] = []
            for step in 0..<120 {
                let changes = (0..<Int.random(in: 1...40, using: &random)).map { _ in Change.random(using: &random) }
                _ = try await store.write { transaction in
                    for change in changes { change.apply(to: transaction) }
                }
                for change in changes { change.apply(to: &model) }
                if step % 20 == 7 { kept.append((try store.snapshot(), model)) }
                try compare(store.snapshot(), with: model, range: .random(using: &random), "seed \(seed) step \(step)")
            }
            kept.append((try store.snapshot(), model))
            for (snapshot, model) in kept { try compare(snapshot, with: model, range: .all, "seed \(seed) at the end") }
        }
    }

    /// The same with transactions that share a sync, each of which reads before it writes, and some of which throw.
    @Test(arguments: StoreWorld.allCases, [1, 2, 3, 4] as [UInt64])
    func transactionsOfOneGroupReadWhatWasWrittenBefore(world: StoreWorld, seed: UInt64) async throws {
        try await world.withStore { store, _ in
            var random = SeededRandom(seed: seed)
            var model: [[UInt8]: [UInt8]] = [:]
            for group in 0..<12 {
                let gate = try await Gate(holding: store)
                let seen = Collected<Sight>()
                var expected: [Sight] = []
                for _ in 0..<40 {
                    let look = Look.random(using: &random)
                    var changes = (0..<Int.random(in: 0...6, using: &random)).map { _ in Change.random(using: &random) }
                    // More than `PendingRows` keeps in order.
                    if Int.random(in: 0..<60, using: &random) == 0 {
                        changes += (0..<5_000).map { .put([0x62] + Array("\($0)".utf8), []) }
                    }
                    let isRefused = Int.random(in: 0..<6, using: &random) == 0
                    store.submit(
                        { [changes] transaction in
                            seen.append(try look.see(transaction))
                            for change in changes { change.apply(to: transaction) }
                            if isRefused { throw WritingTests.Refused() }
                        }, completion: { _ in })
                    expected.append(look.see(model))
                    if !isRefused { for change in changes { change.apply(to: &model) } }
                }
                gate.open()
                let found = try await seen.first(40)
                #expect(found == expected, "seed \(seed) group \(group)")
            }
            // This write completes when everything before it is durable.
            _ = try await store.write { _ in }
            try compare(store.snapshot(), with: model, range: .all, "seed \(seed) at the end")
        }
    }

    /// The reads of a transaction.
    private struct Look: Sendable {
        var keys: [[UInt8]]
        var range: KeyRange?
        var reverse: Bool

        static func random(using random: inout SeededRandom) -> Look {
            let keys = (0..<Int.random(in: 0...3, using: &random)).map { _ in [UInt8].randomKey(using: &random) }
            return Look(
                keys: keys, range: Int.random(in: 0..<3, using: &random) == 0 ? .random(using: &random) : nil,
                reverse: Bool.random(using: &random))
        }

        func see(_ transaction: any StoreTransaction) throws -> Sight {
            var sight = Sight()
            for key in keys { sight.values.append(try transaction.get(key)) }
            guard let range else { return sight }
            try transaction.scan(range, reverse: reverse) { key, value in
                sight.rows.append(key.withUnsafeBufferPointer { Array($0) })
                sight.rows.append(value.withUnsafeBufferPointer { Array($0) })
                return .next
            }
            return sight
        }

        func see(_ model: [[UInt8]: [UInt8]]) -> Sight {
            var sight = Sight(values: keys.map { model[$0] })
            guard let range else { return sight }
            let rows = model.filter { range.contains($0.key) }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
            for (key, value) in reverse ? rows.reversed() : rows { sight.rows += [key, value] }
            return sight
        }
    }

    private struct Sight: Sendable, Equatable {
        var values: [[UInt8]?] = []
        var rows: [[UInt8]] = []
    }

    private func compare(
        _ snapshot: any StoreSnapshot, with model: [[UInt8]: [UInt8]], range: KeyRange, _ place: Comment
    ) throws {
        let expected = model.filter { range.contains($0.key) }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        for reverse in [false, true] {
            var (keys, values): ([[UInt8]], [[UInt8]]) = ([], [])
            try snapshot.scan(range, reverse: reverse) { key, value in
                keys.append(key.withUnsafeBufferPointer { Array($0) })
                values.append(value.withUnsafeBufferPointer { Array($0) })
                return .next
            }
            let inOrder = reverse ? expected.reversed() : expected
            #expect(keys == inOrder.map(\.key), place)
            #expect(values == inOrder.map(\.value), place)
        }
        if let (key, value) = model.first { #expect(try snapshot.get(key) == value, place) }
    }

    private enum Change: Sendable {
        case put([UInt8], [UInt8])
        case delete([UInt8])
        case deleteRange(KeyRange)

        static func random(using random: inout SeededRandom) -> Change {
            switch Int.random(in: 0..<20, using: &random) {
            case 0: .deleteRange(.random(using: &random))
            case 1...4: .delete(.randomKey(using: &random))
            default: .put(.randomKey(using: &random), Array(repeating: 7, count: Int.random(in: 0..<9, using: &random)))
            }
        }

        func apply(to transaction: any StoreTransaction) {
            switch self {
            case .put(let key, let value): transaction.put(key, value)
            case .delete(let key): transaction.delete(key)
            case .deleteRange(let range): transaction.deleteRange(range)
            }
        }

        func apply(to model: inout [[UInt8]: [UInt8]]) {
            switch self {
            case .put(let key, let value): model[key] = value
            case .delete(let key): model[key] = nil
            case .deleteRange(let range):
                for key in model.keys where range.contains(key) { model[key] = nil }
            }
        }
    }
}

extension SeededRandom {
    /// Bytes that do not compress.
    mutating func noise(bytes count: Int) -> [UInt8] {
        let numbers = (0..<(count + 7) / 8).map { _ in next() }
        return numbers.withUnsafeBytes { Array($0.prefix(count)) }
    }
}

extension [UInt8] {
    /// Few enough keys that they collide, with bytes at both ends of the order.
    fileprivate static func randomKey(using random: inout SeededRandom) -> [UInt8] {
        let letters: [UInt8] = [0, 1, 0x61, 0x7F, 0x80, 0xFE, 0xFF]
        return (0..<Int.random(in: 0...4, using: &random)).map { _ in
            letters[Int.random(in: 0..<letters.count, using: &random)]
        }
    }
}

extension KeyRange {
    fileprivate func contains(_ key: [UInt8]) -> Bool {
        !key.lexicographicallyPrecedes(lower) && upper.map { key.lexicographicallyPrecedes($0) } ?? true
    }

    fileprivate static func random(using random: inout SeededRandom) -> KeyRange {
        let lower = [UInt8].randomKey(using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: return KeyRange(lower: lower, upper: nil)
        case 1: return KeyRange(prefix: lower)
        default: return KeyRange(lower: lower, upper: .randomKey(using: &random))
        }
    }
}
