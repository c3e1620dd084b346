import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import HatoTree
import Logging
import Synchronization
import Testing

@testable import HatoMessages

@Suite struct PlannedWriteTests {
    /// More places are read than the right of a listener may rest on.
    private static let rules = #"{"rules": {".write": true, "b": {"$k": {".validate": "!data.exists()"}}}}"#

    @Test func writeThatReadManyPlacesIsOutdatedByThoseOnly() async throws {
        try await RunningMessages.with(rules: Self.rules) { running in
            let administrator = running.administrator
            var children = JSONObject()
            for index in 0..<12_000 { children.append("k\(index)", 1) }
            let caller = Caller.user(Caller.User(uid: "masuo"))
            let write = Write(database: .default, mutation: .set(.object(children), at: "/b"), caller: caller)
            // The first write of all would make the root, which other writes rest on.
            _ = try await administrator.call(Messages.Set(path: "/x/first", value: 1))
            let parts = running.service.parts
            let planned = try #require(try PlannedWrite(write, parts))

            func check() throws -> OptimisticPlan {
                let database = try parts.catalogue.newest.database(.default)
                let history = CommitHistory(of: database, parts, uid: "masuo")
                // A turn without the database's cache, which only writes may fill.
                let turn = WritePlanner(codec: database.codec).turn(
                    reading: StoreTreeReader(try parts.store.snapshot()))
                return try planned.check(in: database, history, planned.resolved, turn)
            }
            _ = try await administrator.call(Messages.Set(path: "/x/p", value: 1))
            #expect(try !check().plan.isEmpty)
            _ = try await administrator.call(Messages.Set(path: "/b/k11999", value: 1))
            #expect(throws: PlannedWrite.Outdated.self) { _ = try check() }
        }
    }

    /// Otherwise any client could have the writer plan large writes, while all others wait.
    @Test func writeThatIsOvertakenAgainAndAgainIsRefused() async throws {
        try await RunningMessages.with { running in
            let publisher = try Publisher {
                ListenerRegistry(
                    running.service.parts, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, line: $0)
            }
            let large = LargeWrites(
                parts: running.service.parts, publisher: publisher, threads: try ReaderPool(threads: 1))
            for caller in [Caller.user(Caller.User(uid: "masuo")), .administrator] {
                let write = Write(database: .default, mutation: .set(1, at: "/a"), caller: caller)
                let (planned, unplanned) = (Counter(), Counter())
                let result: Result<Void, any Error> = await withCheckedContinuation { done in
                    large.submit(
                        write,
                        LargeWrites.Steps { _, plan, _ in
                            guard plan != nil else {
                                unplanned.increment()
                                return WriteOutcome()
                            }
                            planned.increment()
                            throw PlannedWrite.Outdated()
                        } ended: {
                            done.resume(returning: $0.map { _ in })
                        })
                }
                #expect(planned.value == 4)
                #expect(unplanned.value == (caller.isAdministrator ? 1 : 0))
                guard !caller.isAdministrator else {
                    try result.get()
                    continue
                }
                let error = #expect(throws: MessagesError.self) { try result.get() }
                #expect(error?.rpcError.code == .unavailable && error?.rpcError.reason == "contended")
            }
        }
    }

    /// The turn of a write that turns out to take long ends without it, and the write is planned before another turn.
    @Test func writeThatOutgrowsItsTurnIsPlannedBeforeAnother() async throws {
        try await RunningMessages.with { running in
            let publisher = try Publisher {
                ListenerRegistry(
                    running.service.parts, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, line: $0)
            }
            let large = LargeWrites(
                parts: running.service.parts, publisher: publisher, threads: try ReaderPool(threads: 1))
            var mutation = Mutation.set(1, at: "/a")
            mutation.limitToTurn()
            for error in [TooLargeForTurn(), TreeError.tooBig(bytesMax: 1)] as [any Error] {
                let write = Write(database: .default, mutation: mutation, caller: .administrator)
                let (planned, limited) = (Counter(), Counter())
                let result: Result<Void, any Error> = await withCheckedContinuation { done in
                    large.submitInTurn(
                        write, Result { try WritePlanner.resolve(mutation, at: 1) },
                        LargeWrites.Steps { holder, plan, _ in
                            if holder.write?.mutation.rowsInTurnMax != .max { limited.increment() }
                            guard plan != nil else { throw error }
                            planned.increment()
                            return WriteOutcome()
                        } ended: {
                            done.resume(returning: $0.map { _ in })
                        })
                }
                try result.get()
                #expect(planned.value == 1 && limited.value == 1)
            }
        }
    }

    /// What came of a push with the client's key is decided without planning it in its turn.
    @Test func largePushesWithATakenKeyGetTheResponsesOfSmallOnes() async throws {
        let rules = #"{"rules": {"in": {".write": "!data.exists()"}}}"#
        try await RunningMessages.with(rules: rules) { running in
            let key = PushKey(milliseconds: 1_700_000_000_000, random: (1, 2))
            var children = JSONObject()
            for index in 0..<3_000 { children.append("k\(index)", 1) }
            let push = Messages.Push(path: "/in", value: .object(children), key: key)
            let first = try await running.user("masuo").call(push)
            #expect(try await running.user("masuo").call(push) == first)
            #expect(await refusal { try await running.user("sazae").call(push) }?.code == .permissionDenied)
            children["k0"] = "x"
            let changed = Messages.Push(path: "/in", value: .object(children), key: key)
            #expect(await refusal { try await running.user("masuo").call(changed) }?.code == .permissionDenied)
        }
    }
}

private final class Counter: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }
    func increment() { count.add(1, ordering: .relaxed) }
}
