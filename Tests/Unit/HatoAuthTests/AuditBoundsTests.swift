import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoAuth

/// The pages of the audit, how long it keeps entries, and what attackers can make it write.
@Suite(.timeLimit(.minutes(10)))
struct AuditBoundsTests {
    private func list(
        _ bench: AuthBench, _ change: (inout Auth.Audit.List) -> Void = { _ in }
    ) async throws -> Auth.Audit.List.Result {
        var request = Auth.Audit.List()
        change(&request)
        return try await AuditMethods(service: bench.service).entries(request)
    }

    private func all(
        _ bench: AuthBench, _ change: (inout Auth.Audit.List) -> Void = { _ in }
    ) async throws -> [Auth.Audit.Entry] {
        var entries: [Auth.Audit.Entry] = []
        var after: String?
        repeat {
            let page = try await list(bench) { request in
                request.limit = 3
                change(&request)
                request.after = after
            }
            #expect(page.entries.count <= 3)
            entries += page.entries
            after = page.after
        } while after != nil
        return entries
    }

    private func rowCount(_ bench: AuthBench) async throws -> Int {
        try await bench.store.read { rows in
            var count = 0
            for range in [AuthKey.audits, KeyRange(prefix: [UInt8(ascii: "h")])] {
                try rows.rows(range) { _, _ in
                    count += 1
                    return true
                }
            }
            return count
        }
    }

    @Test func pagesHaveEveryEntryOnceTheNewestFirst() async throws {
        let bench = try await AuthBench.open()
        for name in ["a", "b"] {
            for _ in 0..<4 {
                _ = try await bench.signIn(customToken: try bench.customToken(name))
                bench.pass(seconds: 10)
            }
        }
        let entries = try await all(bench)
        #expect(entries.count == 8 && Set(entries.map(\.entry)).count == 8)
        #expect(entries.map(\.time) == entries.map(\.time).sorted(by: >))
        #expect(try await all(bench) { $0.uid = "a" }.map(\.uid) == ["a", "a", "a", "a"])
        #expect(try await all(bench) { $0.type = .signedUp }.map(\.uid) == ["b", "a"])
        let both = try await all(bench) { ($0.uid, $0.type) = ("b", .signedIn) }
        #expect(both.count == 3)
        let (first, last) = (entries[6].time, entries[2].time)
        #expect(try await all(bench) { ($0.from, $0.until) = (first, last) }.map(\.time) == entries[3...6].map(\.time))
        #expect(try await all(bench) { ($0.uid, $0.from) = ("a", last) }.isEmpty)
        #expect(try await all(bench) { ($0.from, $0.until) = (last, first) }.isEmpty)
        #expect(try await all(bench) { $0.uid = "c" }.isEmpty)
    }

    @Test func wrongPagesAreRefusedByName() async throws {
        let bench = try await AuthBench.open()
        let wrong: [(String, (inout Auth.Audit.List) -> Void)] = [
            ("limit", { $0.limit = 0 }), ("limit", { $0.limit = 1_001 }), ("after", { $0.after = "x" }),
            ("after", { $0.after = "" }), ("from", { $0.from = -1 }), ("until", { $0.until = .min }),
            ("uid", { $0.uid = "" }), ("uid", { $0.uid = "a\u{0}b" }),
        ]
        for (name, change) in wrong {
            let error = await wireError { try await list(bench, change) }
            #expect(error?.reason == "INVALID_PAGE_SELECTION" && error?.data["parameter"]?.string == name)
        }
        _ = try await list(bench) { ($0.from, $0.until) = (.max, .max) }
    }

    @Test func entriesEndAfterNinetyDays() async throws {
        let bench = try await AuthBench.open()
        for _ in 0..<3 { _ = try await bench.signIn(customToken: try bench.customToken("a")) }
        bench.pass(seconds: 60 * 86_400)
        _ = try await bench.signIn(customToken: try bench.customToken("a"))
        bench.pass(seconds: 30 * 86_400 - 1)
        try await bench.service.auditWriter.forget(olderThanDays: 90)
        #expect(try await rowCount(bench) == 8)
        bench.pass(seconds: 2)
        try await bench.service.auditWriter.forget(olderThanDays: 90)
        #expect(try await all(bench).count == 1)
        #expect(try await all(bench) { $0.uid = "a" }.count == 1)
        #expect(try await rowCount(bench) == 2)
    }

    @Test func zeroDaysWriteNothing() async throws {
        let bench = try await AuthBench.open { $0.keepAuditDays = 0 }
        _ = try await bench.signUp()
        _ = await wireError { try await bench.signIn("masuo@example.com", "wrong") }
        await bench.service.auditWriter.write()
        #expect(try await rowCount(bench) == 0)
    }

    @Test func guessesOfOneAddressFillNothing() async throws {
        let bench = try await AuthBench.open { $0.limits.signInsPerAddress.burst = 0 }
        let origin = CallOrigin(address: ClientAddress("203.0.113.7"))
        await AuditedCall.$current.withValue(AuditedCall(Auth.SignInWithCustomToken.method, origin)) {
            for number in 0..<500 { _ = await wireError { try await bench.signIn(customToken: "guess \(number)") } }
        }
        await bench.service.auditWriter.write()
        #expect(try await all(bench).count == FailureLog.perSubjectMax)
        bench.pass(seconds: 60)
        await bench.service.auditWriter.write()
        let counted = try await all(bench).compactMap(\.count)
        #expect(counted == [500 - FailureLog.perSubjectMax])
    }

    // MARK: FailureLog

    private func failure(_ address: String?, _ name: String?) -> AuditRecord {
        var record = AuditRecord(.signInFailed)
        (record.address, record.email, record.reason) = (address, name, "INVALID_PASSWORD")
        return record
    }

    @Test func manyAddressesWriteSoManyEntriesAMinute() {
        var log = FailureLog()
        for number in 0..<10_000 { log.failed(failure("a\(number)", "n\(number)"), now: 60_000) }
        #expect(log.taken(now: 61_000).count == FailureLog.perMinuteMax)
        let rest = log.taken(now: 120_000)
        #expect(rest.count == FailureLog.countedMax + 1)
        #expect(rest.compactMap(\.record.count).reduce(0, +) == 10_000 - FailureLog.perMinuteMax)
        #expect(log.isEmpty && log.taken(now: 180_000).isEmpty)
    }

    @Test func oneAccountGuessedFromManyAddressesIsCounted() {
        var log = FailureLog()
        for number in 0..<100 { log.failed(failure("a\(number)", "masuo"), now: 60_000) }
        #expect(log.taken(now: 60_000).count == FailureLog.perSubjectMax)
        log.failed(failure("b", "other"), now: 60_001)
        #expect(log.taken(now: 60_002).count == 1)
        // At the end of the service the rest of the minute is not lost.
        let end = log.takenAtEnd(now: 60_003)
        #expect(end.compactMap(\.record.count).reduce(0, +) == 100 - FailureLog.perSubjectMax)
    }

    @Test func eachMinuteBeginsAnew() {
        var log = FailureLog()
        for minute in 1...3 {
            for _ in 0..<FailureLog.perSubjectMax { log.failed(failure("a", nil), now: Int64(minute) * 60_000) }
            #expect(log.taken(now: Int64(minute) * 60_000).count == FailureLog.perSubjectMax)
        }
    }
}
