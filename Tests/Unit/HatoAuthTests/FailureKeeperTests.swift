import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoAuth

/// Counts of wrong passwords outlive the process.
@Suite(.timeLimit(.minutes(10)))
struct FailureKeeperTests {
    private func guess(_ bench: AuthBench, _ count: Int, from address: String = "192.0.2.1") async -> String? {
        var last: String?
        for _ in 0..<count {
            last = await wireError { try await bench.signIn("masuo@example.com", "wrong", from: address) }?.reason
        }
        return last
    }

    private func rows(_ bench: AuthBench) async throws -> Int {
        try await bench.store.read { try FailureRows.all(in: $0).count }
    }

    @Test func theWaitOutlivesARestart() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp()
        #expect(await guess(bench, 10) == "INVALID_LOGIN_CREDENTIALS")
        #expect(await guess(bench, 1) == "TOO_MANY_ATTEMPTS_TRY_LATER")
        await FailureKeeper(bench.service).write()
        let reopened = try await AuthBench.open(since: bench)
        #expect(await guess(reopened, 1) == "TOO_MANY_ATTEMPTS_TRY_LATER")
        #expect(await guess(reopened, 1, from: "198.51.100.1") == "INVALID_LOGIN_CREDENTIALS", "another network")
        // The one after a second doubles the wait, as without a restart.
        reopened.pass(seconds: 1)
        #expect(await guess(reopened, 1) == "INVALID_LOGIN_CREDENTIALS")
        reopened.pass(seconds: 1)
        #expect(await guess(reopened, 1) == "TOO_MANY_ATTEMPTS_TRY_LATER")
    }

    @Test func aRightPasswordEndsTheCountInTheStoreToo() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp()
        _ = await guess(bench, 3)
        await FailureKeeper(bench.service).write()
        #expect(try await rows(bench) == 2, "of the network, and of all")
        _ = try await bench.signIn(from: "192.0.2.1")
        await FailureKeeper(bench.service).write()
        #expect(try await rows(bench) == 0)
    }

    @Test func oldCountsGo() async throws {
        let bench = try await AuthBench.open()
        _ = await guess(bench, 3)
        await FailureKeeper(bench.service).write()
        #expect(try await rows(bench) > 0)
        bench.pass(seconds: 24 * 3600)
        let reopened = try await AuthBench.open(since: bench)
        #expect(try await rows(reopened) == 0, "at the start")
        _ = await guess(reopened, 3)
        await FailureKeeper(reopened.service).write()
        reopened.pass(seconds: 24 * 3600)
        await reopened.service.keepUpOnce()
        await FailureKeeper(reopened.service).write()
        #expect(try await rows(reopened) == 0, "in the upkeep")
    }

    @Test func theStoreHasNoMoreCountsThanTheMemory() async throws {
        let bench = try await AuthBench.open { $0.limits.attemptEntriesMax = 20 }
        for index in 0..<60 {
            _ = await wireError {
                try await bench.signIn("user\(index)@example.com", "wrong", from: "192.0.2.\(index)")
            }
            if index % 7 == 0 { await FailureKeeper(bench.service).write() }
        }
        await FailureKeeper(bench.service).write()
        #expect(try await rows(bench) == 20)
        let reopened = try await AuthBench.open(since: bench) { $0.limits.attemptEntriesMax = 10 }
        #expect(try await rows(reopened) == 10)
    }

    @Test func rowsShowNoName() async throws {
        let bench = try await AuthBench.open()
        _ = await guess(bench, 3)
        await FailureKeeper(bench.service).write()
        let texts = try await bench.store.read { rows in
            var texts: [String] = []
            try rows.rows(AuthKey.failures) { key, value in
                texts.append(String(decoding: key + value, as: UTF8.self))
                return true
            }
            return texts
        }
        #expect(!texts.isEmpty && !texts.contains { $0.contains("masuo") || $0.contains("192.0.2") })
    }

    @Test func aWriteThatFailsIsRepeated() async throws {
        let bench = try await AuthBench.open()
        _ = await guess(bench, 1)
        let keys = bench.service.attempts.takeChanges(countMax: 10).map(\.key)
        #expect(keys.count == 2 && bench.service.attempts.takeChanges(countMax: 10).isEmpty)
        bench.service.attempts.putBack(keys)
        await FailureKeeper(bench.service).write()
        #expect(try await rows(bench) == 2)
    }

    @Test func signInsToOneAccountAndOfAllHaveLimits() async throws {
        let bench = try await AuthBench.open {
            $0.limits.signInsPerAccountAndAddress = RateLimit(burst: 2, perMinute: 1)
        }
        _ = try await bench.signUp()
        for _ in 0..<2 { _ = try await bench.signIn(from: "192.0.2.1") }
        #expect(
            await wireError { try await bench.signIn(from: "192.0.2.1") }?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        _ = try await bench.signIn(from: "192.0.2.2")
        let all = try await AuthBench.open { $0.limits.signIns = RateLimit(burst: 2, perMinute: 1) }
        _ = try await all.signUp()
        for index in 0..<2 { _ = try await all.signIn(from: "192.0.2.\(index)") }
        #expect(await wireError { try await all.signIn(from: "192.0.2.9") }?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
    }
}
