import HatoStorage
import Testing

@Suite("Reading a store")
struct ReadingTests {
    @Test(arguments: StoreWorld.allCases)
    func rowsComeInTheOrderOfUnsignedBytes(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let keys: [[UInt8]] = [[0xFF, 0xFF], [0x80], [0x7F, 0xFF], [], [0], [0, 0], [0x61], [0x61, 0], [0xFF]]
            _ = try await store.write { transaction in
                for key in keys { transaction.put(key, key) }
            }
            var found: [[UInt8]] = []
            try store.snapshot().scan(.all, reverse: false) { key, value in
                found.append(key.withUnsafeBufferPointer { Array($0) })
                #expect(value.count == key.count)
                return .next
            }
            #expect(found == [[], [0], [0, 0], [0x61], [0x61, 0], [0x7F, 0xFF], [0x80], [0xFF], [0xFF, 0xFF]])
            var backwards: [[UInt8]] = []
            try store.snapshot().scan(.all, reverse: true) { key, _ in
                backwards.append(key.withUnsafeBufferPointer { Array($0) })
                return .next
            }
            #expect(backwards == found.reversed())
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aRangeHoldsItsLowerBoundButNotItsUpper(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": "1", "b": "2", "c": "3", "d": "4"])
            let snapshot = try store.snapshot()
            let range = KeyRange(lower: bytes("b"), upper: bytes("d"))
            #expect(try snapshot.rows(range) == ["b=2", "c=3"])
            #expect(try snapshot.rows(range, reverse: true) == ["c=3", "b=2"])
            #expect(try snapshot.rows(KeyRange(lower: bytes("bb"), upper: nil)) == ["c=3", "d=4"])
            #expect(try snapshot.rows(KeyRange(lower: bytes("c"), upper: bytes("c"))) == [])
            #expect(try snapshot.rows(KeyRange(lower: bytes("d"), upper: bytes("a"))) == [])
            #expect(try snapshot.rows(KeyRange(lower: bytes("d"), upper: bytes("a")), reverse: true) == [])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func uncachedScanReadsTheSame(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": "1", "b": "2", "c": "3"])
            let snapshot = try store.snapshot().uncached
            try await store.put(["a": "9", "d": "4"])
            #expect(try snapshot.rows() == ["a=1", "b=2", "c=3"])
            #expect(try snapshot.rows(KeyRange(lower: bytes("b"), upper: nil), reverse: true) == ["c=3", "b=2"])
            #expect(try snapshot.text("a") == "1")
            #expect(snapshot.version == store.version - 1)
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aPrefixRangeHoldsExactlyTheKeysThatBeginWithIt(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            _ = try await store.write { transaction in
                for key: [UInt8] in [[1], [1, 0xFF], [1, 0xFF, 0], [1, 0xFF, 0xFF], [2], [0xFF], [0xFF, 0xFF, 7]] {
                    transaction.put(key, [])
                }
            }
            func count(_ prefix: [UInt8]) throws -> Int { try store.snapshot().rows(KeyRange(prefix: prefix)).count }
            #expect(try count([1]) == 4)
            #expect(try count([1, 0xFF]) == 3)
            #expect(try count([0xFF]) == 2)
            #expect(try count([0xFF, 0xFF]) == 1)
            #expect(try count([]) == 7)
            #expect(try count([3]) == 0)
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aScanStopsWhenTheVisitorStopsIt(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": "1", "b": "2", "c": "3"])
            var seen: [String] = []
            try store.snapshot().scan(.all, reverse: true) { key, _ in
                seen.append(string(key))
                return seen.count == 2 ? .stop : .next
            }
            #expect(seen == ["c", "b"])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aScanSeeksAheadButNeverBack(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": "", "b": "", "c": "", "d": "", "e": "", "f": ""])
            let steps: [String: ScanStep] = ["a": .seek(bytes("bb")), "d": .seek(bytes("a")), "e": .seek(bytes("zz"))]
            var seen: [String] = []
            try store.snapshot().scan(.all, reverse: false) { key, _ in
                seen.append(string(key))
                return steps[string(key)] ?? .next
            }
            #expect(seen == ["a", "c", "d", "e"])

            let backwards: [String: ScanStep] = ["f": .seek(bytes("dd")), "c": .seek(bytes("c")), "b": .seek([])]
            seen = []
            try store.snapshot().scan(.all, reverse: true) { key, _ in
                seen.append(string(key))
                return backwards[string(key)] ?? .next
            }
            #expect(seen == ["f", "d", "c", "b"])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aSeekStaysInsideItsRange(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": "", "b": "", "c": "", "d": ""])
            let range = KeyRange(lower: bytes("b"), upper: bytes("d"))
            for (reverse, target) in [(false, "d"), (true, "a")] {
                var seen: [String] = []
                try store.snapshot().scan(range, reverse: reverse) { key, _ in
                    seen.append(string(key))
                    return .seek(bytes(target))
                }
                #expect(seen == [reverse ? "c" : "b"])
            }
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func scanRethrowsTheErrorOfItsVisitor(world: StoreWorld) async throws {
        struct Enough: Error {}
        try await world.withStore { store, _ in
            try await store.put(["a": "1"])
            let snapshot = try store.snapshot()
            #expect(throws: Enough.self) {
                try snapshot.scan(.all, reverse: false) { _, _ in throw Enough() }
            }
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aSnapshotNeverChanges(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": "1", "b": "2"])
            let before = try store.snapshot()
            _ = try await store.write { transaction in
                transaction.put("a", "changed")
                transaction.put("c", "new")
                transaction.delete(bytes("b"))
            }
            _ = try await store.write { $0.deleteRange(.all) }
            #expect(before.version == 1)
            #expect(try before.rows() == ["a=1", "b=2"])
            #expect(try before.text("c") == nil)
            #expect(try store.snapshot().rows() == [])
            #expect(try store.snapshot().version == 3)
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func anEmptyValueIsNotAMissingOne(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": ""])
            #expect(try store.snapshot().get(bytes("a")) == [])
            #expect(try store.snapshot().get(bytes("b")) == nil)
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func readsRunOnThreadsOfTheirOwnSideBySide(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": "1"])
            // Two reads that wait for each other end only if they run at the same time.
            let (first, second) = (Collected<Int>(), Collected<Int>())
            store.submitRead {
                first.append(1)
                while second.all.isEmpty {}
                first.append(2)
            }
            store.submitRead {
                second.append(1)
                while first.all.isEmpty {}
                second.append(2)
            }
            _ = try await first.first(2)
            _ = try await second.first(2)
            #expect(try await store.read { try $0.text("a") } == "1")
        }
    }
}
