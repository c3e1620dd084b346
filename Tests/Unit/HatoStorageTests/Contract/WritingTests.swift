import HatoStorage
import HatoTesting
import Testing

@Suite("Writing to a store")
struct WritingTests {
    struct Refused: Error {}

    @Test(arguments: StoreWorld.allCases)
    func aClosureSeesEverythingItsPredecessorsWrote(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let gate = try await Gate(holding: store)
            let answers = Collected<UInt64>()
            for _ in 0..<100 {
                store.submit(
                    { transaction in
                        let count = try transaction.text("count").flatMap { Int($0) } ?? 0
                        transaction.put("count", String(count + 1))
                    }, completion: { answers.append((try? $0.get().version) ?? 0) })
            }
            gate.open()
            let found = try await answers.first(100)
            #expect(found == Array(1...100))
            #expect(try store.snapshot().text("count") == "100")
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func deletedRowsAreGoneForTheNextClosureOfTheSameGroup(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": "1", "b": "2", "c": "3", "d": "4"])
            let gate = try await Gate(holding: store)
            let seen = Collected<[String]>()
            store.submit({ $0.deleteRange(KeyRange(lower: bytes("b"), upper: bytes("d"))) }, completion: { _ in })
            store.submit(
                { transaction in
                    seen.append(try transaction.rows())
                    transaction.put("c", "again")
                }, completion: { _ in })
            store.submit(
                { transaction in
                    seen.append(try transaction.rows(reverse: true))
                    transaction.delete(bytes("a"))
                }, completion: { _ in })
            store.submit({ seen.append(try $0.rows()) }, completion: { _ in })
            gate.open()
            let found = try await seen.first(3)
            #expect(found == [["a=1", "d=4"], ["d=4", "c=again", "a=1"], ["c=again", "d=4"]])
        }
    }

    @Test(arguments: StoreWorld.grouping)
    func snapshotIsThatOfItsPositionInTheQueue(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let observed = Collected<[UInt64]>()
            store.observeCommits { observed.append($0.commits.map(\.version)) }
            let gate = try await Gate(holding: store)
            let seen = Collected<(version: UInt64, value: String?, observed: Int)>()
            for number in 0..<10 {
                // Every fifth snapshot ends its group: the observers are at the same position.
                store.submitSnapshot(endsGroup: number % 5 == 4) { result in
                    guard let snapshot = try? result.get() else { return }
                    seen.append((snapshot.version, (try? snapshot.text("k")) ?? nil, observed.all.joined().count))
                }
                store.submit({ $0.put("k", String(number)) }, completion: { _ in })
            }
            gate.open()
            let found = try await seen.first(10)
            #expect(found.map(\.version) == Array(0...9))
            #expect(found.map(\.value) == [nil] + (0...8).map(String.init))
            #expect(found[4].observed == 4)
            #expect(found[9].observed == 9)
            #expect(try await observed.first(3).map(\.count) == [4, 5, 1])
            #expect(store.statistics["store.groups"] == 1)
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func snapshotOfAClosedStoreIsRefused(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            store.close()
            let refusals = Collected<StoreError>()
            store.submitSnapshot(endsGroup: false) { result in
                if case .failure(let error) = result { refusals.append(error) }
            }
            #expect(refusals.all == [.closed(cause: nil)])
        }
    }

    @Test(arguments: StoreWorld.grouping)
    func closuresThatWaitTogetherShareAGroup(world: StoreWorld) async throws {
        var limits = StoreLimits()
        limits.groupWritesMax = 8
        try await world.withStore(limits) { store, _ in
            let groups = Collected<[UInt64]>()
            store.observeCommits { groups.append($0.commits.map(\.version)) }
            let gate = try await Gate(holding: store)
            for number in 0..<20 { store.submit({ $0.put("k\(number)", "v") }, completion: { _ in }) }
            gate.open()
            // 8 at a time, the gate's own closure among the first or alone.
            let found = try await groups.first(3)
            #expect(found.flatMap(\.self) == Array(1...20) && found.map(\.count).max() == 8)
            #expect(store.statistics["store.groups"] == 3)
        }
    }

    @Test(arguments: StoreWorld.grouping)
    func aGroupEndsWhenItsBytesDo(world: StoreWorld) async throws {
        var limits = StoreLimits()
        limits.groupBytesMax = 1_000
        try await world.withStore(limits) { store, _ in
            let groups = Collected<Int>()
            store.observeCommits { groups.append($0.commits.count) }
            let gate = try await Gate(holding: store)
            for number in 0..<4 {
                store.submit({ $0.put("k\(number)", String(repeating: "x", count: 600)) }, completion: { _ in })
            }
            gate.open()
            let found = try await groups.first(2)
            #expect(found == [2, 2])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aClosureThatThrowsLeavesNothingAndAffectsNoOther(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let gate = try await Gate(holding: store)
            let results = Collected<Result<Committed<Void>, any Error>>()
            store.submit({ $0.put("a", "1") }, completion: results.append)
            store.submit(
                { transaction in
                    transaction.put("b", "never")
                    transaction.deleteRange(.all)
                    transaction.record(bytes("never"))
                    throw Refused()
                }, completion: results.append)
            store.submit({ $0.put("c", "3") }, completion: results.append)
            gate.open()
            let found = try await results.first(3)
            #expect(try found[0].get().version == 1)
            #expect(throws: Refused.self) { try found[1].get() }
            #expect(try found[2].get().version == 2)
            #expect(try store.snapshot().rows() == ["a=1", "c=3"])
            #expect(try store.commits(after: 0, limit: 10).map(\.version) == [1, 2])
        }
    }

    /// A write that records its calls.
    private final class ReportedWrite: StoreWrite {
        private let key: String
        private let isRefused: Bool
        private let steps: Collected<String>

        init(_ key: String, isRefused: Bool = false, _ steps: Collected<String>) {
            self.key = key
            self.isRefused = isRefused
            self.steps = steps
        }

        func write(in transaction: any StoreTransaction) throws {
            steps.append("wrote \(key)")
            transaction.put(key, "1")
            if isRefused { throw Refused() }
        }

        func ended(_ result: Result<UInt64, any Error>) {
            switch result {
            case .success(let version): steps.append("ended \(key) at \(version)")
            case .failure(let error): steps.append("ended \(key): \(error is Refused ? "refused" : "closed")")
            }
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aWriteRunsOnceAndEndsOnce(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let steps = Collected<String>()
            let gate = try await Gate(holding: store)
            store.submit(ReportedWrite("a", steps))
            store.submit(ReportedWrite("b", isRefused: true, steps))
            store.submit(ReportedWrite("c", steps))
            gate.open()
            _ = try await steps.first(6)
            #expect(try store.snapshot().rows() == ["a=1", "c=1"])
            store.close()
            store.submit(ReportedWrite("d", steps))
            #expect(steps.all.filter { $0.hasPrefix("wrote") } == ["wrote a", "wrote b", "wrote c"])
            #expect(
                steps.all.filter { $0.hasPrefix("ended") } == [
                    "ended a at 1", "ended b: refused", "ended c at 2", "ended d: closed",
                ])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aClosureThatWritesNothingGetsTheVersionOfWhatItRead(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            #expect(try await store.write { _ in "nothing" }.version == 0)
            try await store.put(["a": "1"])
            let gate = try await Gate(holding: store)
            let answers = Collected<UInt64>()
            store.submit({ $0.put("a", "2") }, completion: { _ in })
            store.submit(
                { transaction in
                    _ = try transaction.text("a")
                    transaction.attach("a note is no commit")
                    transaction.deleteRange(KeyRange(lower: bytes("z"), upper: bytes("a")))
                }, completion: { answers.append((try? $0.get().version) ?? 99) })
            store.submit({ $0.put("a", "3") }, completion: { answers.append((try? $0.get().version) ?? 99) })
            gate.open()
            let found = try await answers.first(2)
            #expect(found == [2, 3])
            #expect(store.version == 3)
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func discardedTransactionDoesNotAffectItsGroup(world: StoreWorld) async throws {
        let tooLong = [UInt8](repeating: 1, count: StoreLimits.keyBytesMax + 1)
        try await world.withStore { store, _ in
            let gate = try await Gate(holding: store)
            let results = Collected<UInt64?>()
            let seen = Collected<[String]>()
            let bodies: [@Sendable (any StoreTransaction) throws -> Void] = [
                { $0.put("a", "1") },
                { transaction in
                    transaction.put("a", "thrown")
                    transaction.put("b", "thrown")
                    throw Refused()
                },
                { _ in },
                { transaction in
                    transaction.put("c", "too long")
                    transaction.put(tooLong, [])
                },
                { $0.put("d", "1") },
                { seen.append(try $0.rows()) },
                { transaction in
                    seen.append(try transaction.rows())
                    transaction.put("e", "thrown")
                    throw Refused()
                },
                { $0.put("f", "1") },
            ]
            for body in bodies { store.submit(body, completion: { results.append(try? $0.get().version) }) }
            gate.open()
            let versions = try await results.first(bodies.count)
            #expect(versions == [1, nil, 1, nil, 2, 2, nil, 3])
            #expect(seen.all == [["a=1", "d=1"], ["a=1", "d=1"]])
            #expect(try store.snapshot().rows() == ["a=1", "d=1", "f=1"])
            #expect(try store.commits(after: 0, limit: 10).map(\.version) == [1, 2, 3])
        }
    }

    /// Also when a transaction reads what was written just before, which must then be written at once.
    @Test(arguments: StoreWorld.allCases, [1, 3])
    func aPublishedSnapshotShowsItsVersionAndNothingLater(world: StoreWorld, readsBetween: Int) async throws {
        try await world.withStore { store, _ in
            let wrong = Collected<String>()
            let observed = Collected<UInt64>()
            store.observeCommits { group in
                let (version, row) = (group.snapshot.version, (try? group.snapshot.text("v")) ?? nil)
                if row != String(version) { wrong.append("\(version) shows \(row ?? "nothing")") }
                observed.append(version)
            }
            let writes = 2_000
            for _ in 0..<writes {
                store.submit({ $0.put("v", String($0.nextVersion)) }, completion: { _ in })
                for _ in 0..<readsBetween { store.submit({ _ = try $0.rows() }, completion: { _ in }) }
            }
            try await eventually("all are observed") { observed.all.last == UInt64(writes) }
            #expect(wrong.all == [])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func completionsRunInTheOrderOfSubmission(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let order = Collected<Int>()
            for number in 0..<500 {
                store.submit(
                    { transaction in
                        if number % 3 == 0 { throw Refused() }
                        if number % 3 == 1 { transaction.put("k\(number)", "") }
                    }, completion: { _ in order.append(number) })
            }
            let found = try await order.first(500)
            #expect(found == Array(0..<500))
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func versionsOfManyWritersHaveNoGapsAndNoDoubles(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let versions = try await withThrowingTaskGroup(of: [UInt64].self) { group in
                for writer in 0..<8 {
                    group.addTask {
                        var versions: [UInt64] = []
                        for number in 0..<50 {
                            versions.append(try await store.put(["w\(writer)": String(number)], record: "w\(writer)"))
                        }
                        #expect(versions == versions.sorted())
                        return versions
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(versions.sorted() == Array(1...400))
            #expect(store.version == 400)
            #expect(try store.commits(after: 0, limit: 1_000).map(\.version) == Array(1...400))
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aCommitIsPublishedBeforeItIsObservedAndObservedBeforeItCompletes(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let events = Collected<String>()
            store.observeCommits { group in
                let published = (try? store.snapshot().version) ?? 0
                events.append("observed \(group.commits.map(\.version)) at \(published) and \(group.snapshot.version)")
            }
            for number in 1...3 {
                store.submit(
                    { transaction in
                        events.append("planned \(transaction.nextVersion) at \(store.version)")
                        transaction.put("a", String(number))
                    },
                    completion: { result in
                        events.append("answered \((try? result.get().version) ?? 0)")
                    })
                _ = try await events.first(number * 3)
            }
            #expect(
                events.all == [
                    "planned 1 at 0", "observed [1] at 1 and 1", "answered 1",
                    "planned 2 at 1", "observed [2] at 2 and 2", "answered 2",
                    "planned 3 at 2", "observed [3] at 3 and 3", "answered 3",
                ])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func laterWritesOfATransactionWinOverEarlierOnes(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            try await store.put(["a": "1", "b": "1", "c": "1", "z": "1"])
            _ = try await store.write { transaction in
                transaction.put("b", "2")
                transaction.put("bb", "2")
                transaction.deleteRange(KeyRange(lower: bytes("b"), upper: nil))
                transaction.put("c", "3")
                transaction.put("d", "3")
                transaction.delete(bytes("d"))
                transaction.put("a", "2")
                transaction.put("a", "3")
            }
            #expect(try store.snapshot().rows() == ["a=3", "c=3"])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func anOpenEndedRangeIsDeletedToItsEnd(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let longest = [UInt8](repeating: 0xFF, count: StoreLimits.keyBytesMax)
            _ = try await store.write { transaction in
                transaction.put("a", "1")
                transaction.put(longest, [1])
                transaction.put([0xFF, 0xFF], [2])
            }
            #expect(try store.snapshot().get(longest) == [1])
            _ = try await store.write { $0.deleteRange(KeyRange(prefix: [0xFF])) }
            #expect(try store.snapshot().rows() == ["a=1"])
        }
    }

    @Test(arguments: StoreWorld.allCases)
    func aKeyThatIsTooLongFailsItsTransactionOnly(world: StoreWorld) async throws {
        try await world.withStore { store, _ in
            let tooLong = [UInt8](repeating: 1, count: StoreLimits.keyBytesMax + 1)
            await #expect(throws: StoreError.keyTooLong(bytes: tooLong.count)) {
                try await store.write { transaction in
                    transaction.put("a", "1")
                    transaction.put(tooLong, [])
                    transaction.put("b", "1")
                }
            }
            #expect(store.version == 0)
            try await store.put(["a": "2"])
            #expect(try store.snapshot().get(tooLong) == nil)
            #expect(try store.snapshot().rows() == ["a=2"])
        }
    }

    @Test func aReadAfterTheFirstWriteTraps() async {
        await #expect(processExitsWith: .failure) {
            let store = try MemoryStore()
            _ = try await store.write { transaction in
                transaction.put("a", "1")
                _ = try transaction.text("a")
            }
        }
    }

    @Test func aTransactionThatEscapedTraps() async {
        await #expect(processExitsWith: .failure) {
            final class Escape: @unchecked Sendable { var transaction: (any StoreTransaction)? }
            let (store, escape) = (try MemoryStore(), Escape())
            _ = try await store.write { escape.transaction = $0 }
            escape.transaction?.put("a", "1")
        }
    }

    @Test func recordingTwiceTraps() async {
        await #expect(processExitsWith: .failure) {
            let store = try MemoryStore()
            _ = try await store.write { transaction in
                transaction.record([1])
                transaction.record([2])
            }
        }
    }
}
