import HatoStorage
import Testing

@Suite("Closing and copying a store")
struct ClosingTests {
    @Test(arguments: StoreWorld.allCases)
    func closingCompletesSubmittedWritesAndRefusesLaterOnes(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let answers = Collected<UInt64>()
            for number in 1...20 {
                store.submit(
                    { $0.put("a", String(number)) }, completion: { answers.append((try? $0.get().version) ?? 0) })
            }
            let snapshot = try store.snapshot()
            let ends = Collected<StoreError>()
            store.observeCommits({ _ in }, ended: { ends.append($0) })
            store.close()
            #expect(answers.all == Array(1...20))
            #expect(store.version == 20)
            #expect(ends.all == [.closed(cause: nil)])
            await #expect(throws: StoreError.closed(cause: nil)) { try await store.put(["a": "late"]) }
            await #expect(throws: StoreError.closed(cause: nil)) { try await store.read { try $0.text("a") } }
            #expect(throws: StoreError.closed(cause: nil)) { try store.snapshot() }
            #expect(throws: StoreError.closed(cause: nil)) { try snapshot.text("a") }
            #expect(throws: StoreError.closed(cause: nil)) { try snapshot.rows() }
            #expect(throws: StoreError.closed(cause: nil)) { try store.commits(after: 0, limit: 1) }
            #expect(throws: StoreError.closed(cause: nil)) { try store.compactCommits(through: 1) }
            #expect(throws: StoreError.closed(cause: nil)) { try store.backup(to: "/nowhere") }
            store.observeCommits({ _ in }, ended: { ends.append($0) })
            #expect(ends.all == [.closed(cause: nil), .closed(cause: nil)])
            store.close()
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aBackupOpensAsAHistoryOfItsOwn(world: StoreWorld) async throws {
        try await world.withStore { store, folder in
            for number in 1...50 { try await store.put(["k\(number)": "v"], record: "r\(number)") }
            try store.compactCommits(through: 20)
            try store.backup(to: folder.path("backup"))
            try await store.put(["later": "yes"])

            let copy = try world.open(backup: folder.path("backup"))
            #expect(copy.version == 50)
            #expect(copy.epoch != store.epoch)
            #expect(try copy.snapshot().rows().count == 50)
            #expect(copy.keptCommits.oldest == 21)
            #expect(try copy.commits(after: 20, limit: 100).map(\.version) == Array(21...50))
            #expect(try copy.commits(after: 49, limit: 1)[0].record == bytes("r50"))
            #expect(try await copy.put(["k": "v"]) == 51)
            copy.close()
            #expect(store.version == 51)
            #expect(try store.snapshot().text("later") == "yes")
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aBackupIsNeverWrittenOverSomethingElse(world: StoreWorld) async throws {
        try await world.withStore { store, folder in
            try await store.put(["a": "1"])
            try store.backup(to: folder.path("backup"))
            #expect(throws: StoreError.self) { try store.backup(to: folder.path("backup")) }
            #expect(throws: StoreError.self) { try store.backup(to: folder.path("no such folder/backup")) }
            #expect(try await store.put(["a": "2"]) == 2)
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func backupsTakenWhileManyWriteAreWholeCommits(world: StoreWorld) async throws {
        try await world.withStore { store, folder in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<4 {
                    group.addTask {
                        for number in 0..<100 {
                            try await store.put(["a\(writer)": String(number), "b\(writer)": String(number)])
                        }
                    }
                }
                for number in 0..<3 {
                    let answered = store.version
                    try store.backup(to: folder.path("backup\(number)"))
                    let copy = try world.open(backup: folder.path("backup\(number)"))
                    #expect(copy.version >= answered)
                    for writer in 0..<4 {
                        #expect(try copy.snapshot().text("a\(writer)") == copy.snapshot().text("b\(writer)"))
                    }
                    #expect(try copy.commits(after: 0, limit: 1_000).count == copy.version)
                    copy.close()
                }
                try await group.waitForAll()
            }
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func anEpochIsRandomHex(world: StoreWorld) async throws {
        try await world.withStore { first, _ in
            try await world.withStore { second, _ in
                #expect(first.epoch != second.epoch)
                #expect(first.epoch.description.utf8.count == 32)
                #expect(first.epoch.description.allSatisfy { $0.isHexDigit && !$0.isUppercase })
            }
        }
    }
}
