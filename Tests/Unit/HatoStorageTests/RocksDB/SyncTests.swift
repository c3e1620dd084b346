import HatoTesting

#if os(Linux)
    import Foundation
    import HatoStorage
    import Testing

    @testable import HatoRocksDB

    @Suite("Syncs of a RocksDB store", .enabled("RocksDB must be a separate library") { SyncFaults.arePossible })
    struct SyncTests {
        /// A store in a folder whose syncs the test controls.
        private func withStore(
            overlapWritesMin: Int = .max, groupWritesMax: Int? = nil,
            _ body: (RocksDBStore, SyncFaults, TemporaryFolder) async throws -> Void
        ) async throws {
            try await TemporaryFolder.with { folder in
                let faults = SyncFaults(folder: folder.path("store"))
                defer { faults.disarm() }
                var options = RocksDBOptions.small
                options.limits.overlapWritesMin = overlapWritesMin
                if let groupWritesMax { options.limits.groupWritesMax = groupWritesMax }
                let store = try RocksDBStore.open(folder: folder.path("store"), options: options)
                defer { store.close() }
                try await body(store, faults, folder)
            }
        }

        /// Blocks until the condition holds: while syncs are held nothing can be awaited.
        private func wait(for isThere: () -> Bool) {
            let deadline = Date() + 60
            while !isThere(), Date() < deadline { usleep(500) }
        }

        @Test func nothingIsVisibleOrAcknowledgedBeforeItIsSynced() async throws {
            try await withStore { store, faults, _ in
                try await store.put(["a": "1"])
                let before = faults.attempts
                #expect(before > 0)
                let events = Collected<String>()
                store.observeCommits { events.append("observed \($0.snapshot.version)") }
                try faults.withoutSyncs { _ in
                    store.submit({ $0.put("a", "2") }, completion: { _ in events.append("answered the write") })
                    store.submit(
                        { try $0.text("a") }, completion: { events.append("read \((try? $0.get().outcome) ?? "-")") })
                    wait { faults.attempts > before }
                    #expect(faults.attempts == before + 1)
                    usleep(20_000)
                    #expect(events.all == [])
                    #expect(store.version == 1)
                    let (seen, commits) = (try store.snapshot().text("a"), try store.commits(after: 1, limit: 1))
                    #expect(seen == "1")
                    #expect(commits.isEmpty)
                }
                let all = try await events.first(3)
                #expect(all == ["observed 2", "answered the write", "read 2"])
                #expect(try store.snapshot().text("a") == "2")
            }
        }

        /// The next group is planned while a group is being synced: on its state, and acknowledged after it.
        @Test func writesArePlannedOnAGroupThatIsBeingSynced() async throws {
            // The first group is the gate's write and the next one, or the two after the gate: that depends on how long
            // the gate holds the writer.
            try await withStore(overlapWritesMin: 2) { store, faults, _ in
                try await store.put(["a": "1", "b": "1", "c": "1"])
                let events = Collected<String>()
                store.observeCommits { events.append("observed \($0.snapshot.version)") }
                let gate = try await Gate(holding: store)
                let before = faults.attempts
                try faults.withoutSyncs { _ in
                    store.submit({ $0.put("a", "2") }, completion: { _ in events.append("answered a") })
                    store.submit({ $0.delete(bytes("b")) }, completion: { _ in events.append("answered b") })
                    gate.open()
                    let planned = Collected<[String?]>()
                    wait { faults.attempts > before }
                    store.submit(
                        { transaction in
                            planned.append([try transaction.text("a"), try transaction.text("b")])
                            transaction.put("c", "2")
                        }, completion: { _ in events.append("answered c") })
                    wait { planned.all.count == 1 }
                    #expect(planned.all == [["2", nil]])
                    #expect(events.all == [])
                    #expect(store.version == 1)
                    let seen = try store.snapshot().rows()
                    #expect(seen == ["a=1", "b=1", "c=1"])
                }
                let all = try await events.first(5)
                #expect(all.last == "answered c")
                #expect(all.filter { $0.hasPrefix("answered") } == ["answered a", "answered b", "answered c"])
                #expect(try store.snapshot().rows() == ["a=2", "c=2"])
            }
        }

        /// A group planned after one that fails is refused with it, and nothing of it is left.
        @Test func groupPlannedOnAFailedGroupIsRefusedToo() async throws {
            try await withStore(overlapWritesMin: 1) { store, faults, folder in
                try await store.put(["k": "0"])
                let results = Collected<Refusal>()
                let gate = try await Gate(holding: store)
                faults.fail(with: EIO)
                for number in 1...200 {
                    store.submit(
                        { $0.put("k", String(number)) }, completion: { results.append(Refusal($0)) })
                }
                gate.open()
                let all = try await results.first(200)
                let unknown = all.prefix { $0 == .outcomeUnknown }.count
                #expect(unknown > 0)
                #expect(Set(all.dropFirst(unknown)).isSubset(of: [.closed]))
                #expect(store.version == 1)
                store.close()
                #expect(results.all.count == 200)
                faults.disarm()
                let again = try RocksDBStore.open(folder: folder.path("store"), options: .small)
                defer { again.close() }
                #expect(try again.snapshot().text("k") == String(again.version - 1))
                // Writes that were refused as undone are undone.
                #expect(again.version <= 1 + UInt64(unknown))
            }
        }

        /// Nothing that waits behind a failed group has reached the log; writes that only read, or are refused, have no
        /// unknown outcome.
        @Test func onlyWhatMayBeInTheLogHasAnUnknownOutcome() async throws {
            try await withStore(groupWritesMax: 2) { store, faults, folder in
                try await store.put(["k": "0"])
                let results = Collected<Refusal>()
                let gate = try await Gate(holding: store)
                faults.fail(with: EIO)
                store.submit({ $0.put("k", "1") }, completion: { results.append(Refusal($0)) })
                store.submit({ _ in }, completion: { results.append(Refusal($0)) })
                store.submit({ $0.put("k", "2") }, completion: { results.append(Refusal($0)) })
                gate.open()
                let all = try await results.first(3)
                #expect(all == [.outcomeUnknown, .closed, .closed])
                store.close()
                faults.disarm()
                let again = try RocksDBStore.open(folder: folder.path("store"), options: .small)
                defer { again.close() }
                let left = try again.snapshot().text("k")
                #expect(left == "0" || left == "1")
            }
        }

        /// A compaction on a full disk leaves RocksDB accepting writes without an error. Writes that are durable by
        /// then succeed.
        @Test func aFailedCompactionEndsTheStoreAfterTheNextSync() async throws {
            try await withStore { store, faults, _ in
                faults.failCompactions(with: ENOSPC)
                var error: StoreError?
                try await eventually("the store ends") {
                    do {
                        try await store.put(["k": String(repeating: "v", count: 1_000)])
                        // The store may have ended by now.
                        try? store.database.whileOpen { () throws(StoreError) in try store.database.writeOut() }
                    } catch let failure as StoreError {
                        error = failure
                    }
                    return error != nil
                }
                guard case .closed(let cause?)? = error else { throw Unexpected(error) }
                #expect(cause.contains("background work of the database in"), "\(cause)")
                await #expect(throws: StoreError.self) { try await store.put(["k": "late"]) }
            }
        }

        @Test func aGroupCostsOneSync() async throws {
            try await withStore { store, faults, _ in
                let gate = try await Gate(holding: store)
                let before = faults.attempts
                let answers = Collected<UInt64>()
                for number in 0..<100 {
                    store.submit(
                        { $0.put("k\(number)", "") }, completion: { answers.append((try? $0.get().version) ?? 0) })
                }
                gate.open()
                let versions = try await answers.first(100)
                #expect(versions == Array(1...100))
                #expect(faults.attempts == before + 1)
            }
        }

        @Test func aFailedSyncEndsTheStoreAndIsNeverTriedAgain() async throws {
            try await withStore { store, faults, folder in
                for number in 1...5 { try await store.put(["k": String(number)]) }
                let gate = try await Gate(holding: store)
                let results = Collected<StoreError?>()
                for number in 6...8 {
                    store.submit(
                        { $0.put("k", String(number)) },
                        completion: { result in
                            if case .failure(let error) = result {
                                results.append(error as? StoreError)
                            } else {
                                results.append(nil)
                            }
                        })
                }
                let before = faults.attempts
                faults.fail(with: EIO)
                gate.open()
                let refused = try await results.first(3)
                guard case .outcomeUnknown(let cause)? = refused[0] else { throw Unexpected(refused) }
                #expect(cause.contains("Input/output error"))
                #expect(Set(refused) == [.outcomeUnknown(cause: cause)])
                await #expect(throws: StoreError.closed(cause: cause)) { try await store.put(["k": "late"]) }
                #expect(store.version == 5)
                store.close()
                #expect(faults.attempts == before + 1)

                // The owner opens the store again. All acknowledged commits are there, whole commits only.
                faults.disarm()
                let again = try RocksDBStore.open(folder: folder.path("store"), options: .small)
                #expect(again.version >= 5)
                #expect(try again.snapshot().text("k") == String(again.version))
                again.close()
            }
        }

        @Test func aFailedSyncOfCompactionEndsTheStoreToo() async throws {
            try await withStore { store, faults, _ in
                for number in 1...5 { try await store.put(["k": String(number)]) }
                let ends = Collected<StoreError>()
                store.observeCommits({ _ in }, ended: { ends.append($0) })
                faults.fail(with: EIO)
                #expect(throws: StoreError.self) { try store.compactCommits(through: 3) }
                let ended = try await ends.first(1)
                guard case .closed(_?) = ended[0] else { throw Unexpected(ended) }
            }
        }

        /// The machine fails: the logs hold exactly what was synced. Every acknowledged commit is in it, and the
        /// `answered` file, which is never synced, is not ahead of it.
        @Test(arguments: [1, .max])
        func syncedLogHoldsEveryAcknowledgedCommit(overlapWritesMin: Int) async throws {
            try await withStore(overlapWritesMin: overlapWritesMin) { store, faults, folder in
                let writers = (0..<4).map { writer in
                    Task {
                        while !Task.isCancelled {
                            try await store.put(["w\(writer)": "x"], record: String(repeating: "r", count: 100))
                        }
                    }
                }
                for round in 0..<5 {
                    let reached = store.version + 20
                    try await eventually("the writers write on") { store.version >= reached }
                    let copy = folder.path("copy\(round)")
                    let answered = try faults.withoutSyncs { synced in
                        // Read first: commits acknowledged after this line do not matter.
                        let answered = store.version
                        try FileManager.default.copyItem(atPath: folder.path("store"), toPath: copy)
                        for (log, size) in synced {
                            let path = copy + log.dropFirst(folder.path("store").count)
                            guard FileManager.default.fileExists(atPath: path) else { continue }
                            try FileHandle(forWritingTo: URL(fileURLWithPath: path)).truncate(atOffset: UInt64(size))
                        }
                        return answered
                    }
                    let survivor = try RocksDBStore.open(folder: copy, options: .small)
                    #expect(survivor.version >= answered)
                    survivor.close()
                }
                for writer in writers { writer.cancel() }
                for writer in writers { try await writer.value }
            }
        }
    }

    /// The outcome of a write.
    enum Refusal: Hashable, Sendable {
        case none, closed, outcomeUnknown, other

        init(_ result: Result<some Any, any Error>) {
            switch result {
            case .success: self = .none
            case .failure(StoreError.closed): self = .closed
            case .failure(StoreError.outcomeUnknown): self = .outcomeUnknown
            case .failure: self = .other
            }
        }
    }
#endif
