import HatoStorage
import Testing

@Suite("Replaying and following commits")
struct CommitTests {
    @Test(arguments: StoreWorld.allCases)
    func commitsAreReplayedInOrderWithTheirRecords(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            #expect(try store.commits(after: 0, limit: 10).isEmpty)
            try await store.put(["a": "1"], record: "one")
            try await store.put(["a": "2"])
            _ = try await store.write { $0.record(bytes("three")) }
            let commits = try store.commits(after: 0, limit: 10)
            #expect(commits.map(\.version) == [1, 2, 3])
            #expect(commits.map { String(decoding: $0.record, as: UTF8.self) } == ["one", "", "three"])
            #expect(try store.commits(after: 1, limit: 1).map(\.version) == [2])
            #expect(try store.commits(after: 3, limit: 10).isEmpty)
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aVersionThatNeverWasIsRefused(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": "1"])
            #expect(throws: StoreError.unknownVersion(newest: 1)) { try store.commits(after: 2, limit: 1) }
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func largeRecordsComeInSmallerResults(world: StoreWorld) async throws {
        var limits = StoreLimits()
        limits.commitsBytesMax = 1_000
        try await world.withStore(limits) { store, _ in
            for _ in 0..<5 { try await store.put([:], record: String(repeating: "x", count: 700)) }
            #expect(try store.commits(after: 0, limit: 10).map(\.version) == [1, 2])
            #expect(try store.commits(after: 2, limit: 10).map(\.version) == [3, 4])
            #expect(try store.commits(after: 4, limit: 10).map(\.version) == [5])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func removedRecordsDoNotCountAsKeptBytes(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            for _ in 0..<20 { try await store.put(["a": "1"], record: String(repeating: "x", count: 50_000)) }
            #expect((900_000..<2_500_000).contains(store.keptCommits.bytes))
            try store.compactCommits(through: 18)
            #expect((90_000..<250_000).contains(store.keptCommits.bytes))
            try store.compactCommits(through: 20)
            #expect(store.keptCommits.bytes == 0)
            try await store.put(["a": "2"], record: String(repeating: "x", count: 50_000))
            #expect((30_000..<250_000).contains(store.keptCommits.bytes))
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func compactedCommitsAreRemovedAndTheirRowsStay(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            #expect(store.keptCommits.oldest == nil)
            for number in 1...10 { try await store.put(["k": String(number)], record: "r\(number)") }
            #expect(store.keptCommits.oldest == 1)
            try store.compactCommits(through: 4)
            #expect(store.keptCommits.oldest == 5)
            #expect(throws: StoreError.compacted(oldest: 5)) { try store.commits(after: 3, limit: 10) }
            #expect(try store.commits(after: 4, limit: 10).map(\.version) == Array(5...10))
            try store.compactCommits(through: 2)
            #expect(store.keptCommits.oldest == 5)
            try store.compactCommits(through: 1_000)
            #expect(store.keptCommits.oldest == nil)
            #expect(try store.commits(after: 10, limit: 10).isEmpty)
            #expect(throws: StoreError.compacted(oldest: 11)) { try store.commits(after: 0, limit: 10) }
            #expect(try store.snapshot().rows() == ["k=10"])
            #expect(try await store.put(["k": "11"]) == 11)
            #expect(store.keptCommits.oldest == 11)
            #expect(try store.commits(after: 10, limit: 10).map(\.version) == [11])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func observersGetTheNotesOfWhatWasPlanned(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let notes = Collected<String>()
            let observation = store.observeCommits { group in
                for commit in group.commits {
                    notes.append("\(commit.version) \(commit.note as? String ?? "-") \(commit.record.count)")
                }
            }
            _ = try await store.write { transaction in
                transaction.put("a", "1")
                transaction.record([1, 2])
                transaction.attach("plan")
            }
            try await store.put(["b": "1"])
            observation.cancel()
            try await store.put(["c": "1"])
            #expect(notes.all == ["1 plan 2", "2 - 0"])
            #expect(try store.commits(after: 0, limit: 1)[0].note == nil)
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aFollowerGetsEarlierCommitsAndThenNewOnes(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            for number in 1...300 { try await store.put([:], record: "r\(number)") }
            let seen = Collected<UInt64>()
            let follower = Task {
                for try await commit in store.follow(after: 10) {
                    #expect(commit.record == bytes("r\(commit.version)"))
                    seen.append(commit.version)
                }
            }
            _ = try await seen.first(290)
            for number in 301...400 { try await store.put([:], record: "r\(number)") }
            let found = try await seen.first(390)
            #expect(found == Array(11...400))
            follower.cancel()
            try await follower.value
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aFollowerMissesNothingWhileManyWrite(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let seen = Collected<UInt64>()
            let followers = (0..<3).map { _ in
                Task {
                    var last: UInt64 = 0
                    for try await commit in store.follow(after: 0) {
                        #expect(commit.version == last + 1)
                        last = commit.version
                        if last == 200 { break }
                    }
                    seen.append(last)
                }
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<4 {
                    group.addTask {
                        for number in 0..<50 { try await store.put(["w\(writer)": String(number)]) }
                    }
                }
                try await group.waitForAll()
            }
            let found = try await seen.first(3)
            #expect(found == [200, 200, 200])
            for follower in followers { try await follower.value }
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aFollowerLearnsThatItsPositionIsCompacted(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            for _ in 0..<5 { try await store.put(["a": "1"]) }
            try store.compactCommits(through: 3)
            await #expect(throws: StoreError.compacted(oldest: 4)) {
                for try await _ in store.follow(after: 0) {}
            }
            await #expect(throws: StoreError.unknownVersion(newest: 5)) {
                for try await _ in store.follow(after: 6) {}
            }
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aWaitingFollowerLearnsThatTheStoreClosed(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": "1"])
            let seen = Collected<UInt64>()
            let follower = Task {
                for try await commit in store.follow(after: 0) { seen.append(commit.version) }
            }
            _ = try await seen.first(1)
            store.close()
            await #expect(throws: StoreError.closed(cause: nil)) { try await follower.value }
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aCancelledFollowerEndsQuietly(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let follower = Task { () throws -> Int in
                var count = 0
                for try await _ in store.follow(after: 0) { count += 1 }
                return count
            }
            follower.cancel()
            let found = try await follower.value
            #expect(found == 0)
        }
    }
}
