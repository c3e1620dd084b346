import HatoStorage
import HatoTesting
import Testing

@Suite("Rows that were prepared")
struct PreparedRowsTests {
    private func prepared(_ store: any Store, _ rows: [String: String]) throws -> any PreparedRows {
        try store.prepareRows { target in
            for (key, value) in rows.sorted(by: { $0.key < $1.key }) { target.put(bytes(key), bytes(value)) }
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func rowsAreThereWithTheCommitThatTakesThem(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": "old", "b1": "old", "b2": "old", "c": "old"])
            let before = try store.snapshot()
            let rows = try store.prepareRows { target in
                target.deleteRange(KeyRange(prefix: bytes("b")))
                target.put(bytes("a"), bytes("new"))
                target.put(bytes("b2"), bytes("new"))
                target.delete(bytes("c"))
            }
            #expect(try store.snapshot().rows() == ["a=old", "b1=old", "b2=old", "c=old"])
            let done = try await store.write { transaction in
                transaction.put("d", "new")
                transaction.take([rows])
                transaction.record(bytes("taken"))
            }
            #expect(done.version == 2)
            #expect(try store.snapshot().rows() == ["a=new", "b2=new", "d=new"])
            #expect(try before.rows() == ["a=old", "b1=old", "b2=old", "c=old"])
            #expect(try store.commits(after: 1, limit: 9).map(\.record) == [bytes("taken")])
            try await store.put(["a": "newest", "b1": "newest"])
            #expect(try store.snapshot().rows() == ["a=newest", "b1=newest", "b2=new", "d=new"])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func laterTransactionsOfTheGroupSeePreparedRows(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let (first, second) = (
                try prepared(store, ["b": "1", "m": "1"]), try prepared(store, ["c": "2", "m": "2"])
            )
            let gate = try await Gate(holding: store)
            let seen = Collected<[String]>()
            store.submit({ $0.put("a", "0") }, completion: { _ in })
            store.submit({ seen.append(try $0.rows()) }, completion: { _ in })
            store.submit({ $0.take([first]) }, completion: { _ in })
            store.submit({ seen.append(try $0.rows()) }, completion: { _ in })
            store.submit({ $0.put("m", "3") }, completion: { _ in })
            store.submit({ $0.take([second]) }, completion: { _ in })
            store.submit({ seen.append(try $0.rows()) }, completion: { _ in })
            gate.open()
            let found = try await seen.first(3)
            #expect(found == [["a=0"], ["a=0", "b=1", "m=1"], ["a=0", "b=1", "c=2", "m=2"]])
            #expect(store.version == 4)
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func rowsTakenByATransactionThatThrowsAreDiscarded(world: StoreWorld) async throws {
        struct Refused: Error {}
        try await world.withStore { store, _ in
            let rows = try prepared(store, ["a": "1"])
            await #expect(throws: Refused.self) {
                try await store.write { transaction in
                    transaction.take([rows])
                    throw Refused()
                }
            }
            try await store.put(["z": "1"])
            #expect(try store.snapshot().rows() == ["z=1"])
            #expect(throws: Refused.self) { try store.prepareRows { _ in throw Refused() } }
            let nothing = try store.prepareRows { _ in }
            #expect(try await store.write { $0.take([nothing]) }.version == 2)
            let long = [UInt8](repeating: 1, count: StoreLimits.keyBytesMax + 1)
            #expect(throws: StoreError.self) { try store.prepareRows { $0.put(long, []) } }
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aBackupHoldsThem(world: StoreWorld) async throws {
        try await world.withStore { store, folder in
            let many = Dictionary(uniqueKeysWithValues: (0..<5_000).map { ("k\($0)", String($0)) })
            let parts = [try prepared(store, many), try prepared(store, ["z1": "1"])]
            _ = try await store.write { $0.take(parts) }
            try store.backup(to: folder.path("backup"))
            let copy = try world.open(backup: folder.path("backup"))
            defer { copy.close() }
            #expect(try copy.snapshot().rows().count == 5_001)
            #expect(try copy.snapshot().rows() == store.snapshot().rows())
        }
    }
}
