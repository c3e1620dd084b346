import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

/// The keys of rows: in the order of their paths, decoded completely, and damaged ones never trap.
@Suite struct RowKeyFuzzTests {
    @Test func rowsOfPathsAreReadBackInOrder() {
        let codec = TreeKeyCodec(prefix: [7, 1])
        let failures = FuzzInputs.failures(2_000) { random in
            let paths = (0..<2).map { _ in
                TreePath(
                    uncheckedKeys: (0..<random.below(4)).map { _ in random.treeKey() }, isPriority: random.once(in: 4))
            }
            let rows = paths.map { codec.key(of: $0) }
            for (path, row) in zip(paths, rows) where codec.path(of: row.span) != path {
                return "not read back: \(path.text.debugDescription)"
            }
            let order = Self.order(paths[0], paths[1])
            let byBytes = rows[0] == rows[1] ? 0 : rows[0].lexicographicallyPrecedes(rows[1]) ? -1 : 1
            return order == byBytes ? nil : "\(paths.map(\.text)): \(byBytes)"
        }
        #expect(failures == [])
    }

    @Test func rowsOfIndexesAreReadBackInOrder() {
        let failures = FuzzInputs.failures(2_000) { random in
            let sortKeys = (0..<2).map { _ in SortKey(random.sortValue(), random.treeKey()) }
            let rows = sortKeys.map { IndexKeyCodec.row([9], $0) }
            for (sortKey, row) in zip(sortKeys, rows) {
                guard let read = IndexKeyCodec.decode(row.span, from: 1) else { return "not read: \(sortKey)" }
                guard read.sortKey.key == sortKey.key, read.isTruncated || read.sortKey.value == sortKey.value else {
                    return "not read back: \(sortKey)"
                }
                guard read.isTruncated != IndexKeyCodec.isComplete(sortKey.value) else {
                    return "complete or not: \(sortKey)"
                }
            }
            guard sortKeys.allSatisfy({ IndexKeyCodec.isComplete($0.value) }) else { return nil }
            let order = sortKeys[0] == sortKeys[1] ? 0 : sortKeys[0] < sortKeys[1] ? -1 : 1
            let byBytes = rows[0] == rows[1] ? 0 : rows[0].lexicographicallyPrecedes(rows[1]) ? -1 : 1
            return order == byBytes ? nil : "\(sortKeys): \(byBytes)"
        }
        #expect(failures == [])
    }

    @Test func rowsThatOnceTrappedAreReadOrRefused() {
        // The lead byte of a surrogate at the very end, and an integer with a negative length.
        for row: [UInt8] in [
            [0x61, 0xED], [0xED, 0xED], [2, 0x80, 0, 0, 0, 0x80, 0, 0], [2, 0x80, 0, 0, 0, 0x80, 0],
        ] {
            _ = TreeKeyCodec.decode(row.span)
            _ = TreeKeyCodec(prefix: [9]).path(of: ([9] + row).span)
            _ = IndexKeyCodec.decode(([9, 0x10] + row).span, from: 1)
        }
        #expect(TreeKeyCodec.decode(([2, 0x80, 0, 0, 0, 0x80, 0, 0] as [UInt8]).span) == nil)
    }

    @Test func damagedRowsAreReadOrRefused() {
        let codec = TreeKeyCodec(prefix: [7, 1])
        let failures = FuzzInputs.failures(3_000) { random in
            var row = codec.key(of: TreePath(uncheckedKeys: (0..<random.below(3)).map { _ in random.treeKey() }))
            random.mutate(&row, inserting: [[2], [0], [1], [0xED], [0xED, 0xA0], [2, 0x80, 0, 0, 0, 0xFF], [0xF0]])
            _ = codec.path(of: row.span)
            _ = TreeKeyCodec.decode(row.span)
            var entry = IndexKeyCodec.row([9], SortKey(random.sortValue(), random.treeKey()))
            random.mutate(&entry, inserting: [[2], [0], [1], [0xED], [0x40], [0x50], [0xEF, 0xFF], [0xE2]])
            _ = IndexKeyCodec.decode(entry.span, from: min(1, entry.count))
            return nil
        }
        #expect(failures == [])
    }

    /// A node, its priority, then its children.
    private static func order(_ left: TreePath, _ right: TreePath) -> Int {
        for (one, other) in zip(left.keys, right.keys) where one != other { return one < other ? -1 : 1 }
        let ranks = [left, right].map { path in path.isPriority ? 1 : 0 }
        if left.depth == right.depth { return (ranks[0] - ranks[1]).signum() }
        let shorterIsLeft = left.depth < right.depth
        // Ancestors come first, with their priority.
        return shorterIsLeft ? -1 : 1
    }
}

extension SeededRandom {
    fileprivate mutating func treeKey() -> TreeKey {
        let text: String =
            switch below(5) {
            case 0:
                one(of: ["-", ""]) + String(repeating: "0", count: once(in: 9) ? below(700) : below(3))
                    + "\(below(4) * 715_827_882)"
            case 1: one(of: ["2147483647", "2147483648", "-2147483648", "-2147483649", "-0", "00", "-", "0"])
            case 2: "\(below(20))" + one(of: ["", "a"])
            default:
                (0..<1 + below(4)).map { _ in
                    one(of: [
                        "a", "b", "é", "\u{D7FF}", "\u{E000}", "\u{FFFF}", "😀", "\u{10000}", "\u{10FFFF}", "~", " ",
                    ])
                }.joined()
            }
        return TreeKey(unchecked: text)
    }

    fileprivate mutating func sortValue() -> SortValue {
        switch below(7) {
        case 0: return .null
        case 1: return .leaf(.bool(once(in: 2)))
        case 2: return .object
        case 3:
            let number = once(in: 2) ? Double(bitPattern: next()) : Double(below(7) - 3) / 2
            return .leaf(.number(number.isFinite && number != 0 ? number : 0))
        default:
            let length = once(in: 8) ? 250 + below(12) : below(4)
            return .leaf(
                .string(
                    (0..<length).map { _ in one(of: ["a", "a", "\u{0}", "\u{1}", "\u{7F}", "é", "\u{FFFF}", "😀"]) }
                        .joined()))
        }
    }
}
