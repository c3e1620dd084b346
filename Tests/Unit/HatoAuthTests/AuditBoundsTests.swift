import HatoModel
import HatoRPC
import HatoStorage
import Synchronization
import TestStores
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

    /// A user makes any number of entries, and must not displace what shows what others did.
    @Test func entriesOfAdministratorsGoLast() async throws {
        let bench = try await AuthBench.open { $0.limits.auditBytesMax = 20_000 }
        var administrator = AuditedCall("auth.settings.set", CallOrigin(caller: .administrator))
        administrator.by = "administrator"
        try await AuditedCall.$current.withValue(administrator) {
            var settings = Auth.Settings.Set()
            settings.passwordLengthMin = 16
            _ = try await bench.service.settings.set(settings)
        }
        let session = try await bench.signUp()
        for number in 0..<200 {
            bench.pass(seconds: 1)
            _ = try await bench.service.sessionList.fork(
                Auth.Sessions.Fork(refreshToken: session.refreshToken, label: "widget \(number)"), CallOrigin())
        }
        // They are written between two pages, so that there is too much again.
        for number in 0..<20 { _ = await wireError { try await bench.signIn("a\(number)@example.com", "wrong") } }
        await bench.service.auditWriter.keepRoom(bench.service.metrics)
        let kept = try await figures(bench)
        #expect(kept.said == kept.are && kept.are <= 20_000)
        let entries = try await all(bench)
        #expect(entries.contains { $0.type == .settingsChanged } && !entries.contains { $0.type == .signedUp })
    }

    private func add(_ count: Int, by administrator: String?, to bench: AuthBench) async throws {
        bench.pass(seconds: 1)
        _ = try await bench.store.write { [now = bench.now] rows in
            var figures = try StoreFigures.find(in: rows)
            for index in 0..<count {
                var record = AuditRecord(.updated)
                record.by = administrator
                let id = AuditID(time: now, version: rows.nextVersion, index: index)
                figures.addAudit(bytes: AuditRows.put(record, id, in: rows))
            }
            figures.put(in: rows)
        }
        bench.pass(seconds: 120)
    }

    @Test func entriesThatAreSparedAreReadOnceAndWrittenNever() async throws {
        let store = CountingStore(try MemoryStore())
        let bench = try await AuthBench.open(on: store) { $0.limits.auditBytesMax = 150_000 }
        // Six pages.
        try await add(3_000, by: "a", to: bench)
        let room = 150_000 - (try await figures(bench).said)
        #expect(room > 0)
        try await add(1 + room / 30, by: nil, to: bench)
        for round in 0..<2 {
            let before = try await figures(bench).said
            #expect(before > 150_000)
            store.reset()
            await bench.service.auditWriter.keepRoom(bench.service.metrics)
            let counts = store.counts
            #expect(counts.writes <= 2, "as many as delete something")
            #expect(round == 0 ? counts.reads > 6 : counts.reads < 6, "round \(round): \(counts.reads)")
            let kept = try await figures(bench)
            #expect(kept.said == kept.are && kept.are <= 150_000)
            try await add(1 + (150_000 - kept.are) / 30, by: nil, to: bench)
        }
        let spared = try await bench.store.read { rows in
            var count = 0
            try rows.rows(AuthKey.audits) { _, value in
                if (try? AuditRecord(value))?.by != nil { count += 1 }
                return true
            }
            return count
        }
        #expect(spared == 3_000)
    }

    private func figures(_ bench: AuthBench) async throws -> (said: Int, are: Int) {
        try await bench.store.read { rows in
            let bytes = try AuthKey.auditRanges.reduce(0) { try $0 + Int(rows.bytes(of: $1)) }
            return (try StoreFigures.find(in: rows).auditBytes, bytes)
        }
    }

    @Test func theOldestEntriesGoBeyondTheBytes() async throws {
        let bench = try await AuthBench.open { $0.limits.auditBytesMax = 20_000 }
        for number in 0..<250 {
            _ = try await bench.signIn(customToken: try bench.customToken("u\(number % 3)"))
            bench.pass(seconds: 1)
        }
        let before = try await all(bench)
        #expect(try await figures(bench).said > 20_000)
        await bench.service.auditWriter.keepRoom(bench.service.metrics)
        let kept = try await figures(bench)
        #expect(kept.said == kept.are && kept.are <= 20_000 && kept.are > 19_000)
        let after = try await all(bench)
        #expect(after == Array(before.prefix(after.count)) && after.count < before.count)
        let ofAccount = try await all(bench) { $0.uid = "u0" }
        #expect(ofAccount == after.filter { $0.uid == "u0" })
        // The rest is not too much.
        await bench.service.auditWriter.keepRoom(bench.service.metrics)
        #expect(try await all(bench) == after)
    }

    @Test func theBytesAreThoseOfTheRows() async throws {
        let bench = try await AuthBench.open()
        _ = try await bench.signUp()
        bench.pass(seconds: 86_401)
        _ = await wireError { try await bench.signIn("masuo@example.com", "wrong") }
        await bench.service.auditWriter.write()
        let all = try await figures(bench)
        #expect(all.said == all.are && all.are > 0)
        try await bench.service.auditWriter.forget(olderThanDays: 1)
        let rest = try await figures(bench)
        #expect(rest.said == rest.are && rest.are < all.are && rest.are > 0)
        // The version before this one counted nothing.
        _ = try await bench.store.write { $0.deleteRow(AuthKey.figures) }
        let reopened = try await AuthBench.open(since: bench)
        #expect(try await figures(reopened) == rest)
    }

    /// As after an earlier version has run on the store.
    @Test func wrongFiguresAreCorrectedBeforeAnythingIsDeleted() async throws {
        let bench = try await AuthBench.open { $0.limits.auditBytesMax = 20_000 }
        _ = try await bench.signUp()
        let right = try await figures(bench).are
        _ = try await bench.store.write { rows in
            var wrong = try StoreFigures.find(in: rows)
            wrong.addAudit(bytes: 30_000)
            wrong.put(in: rows)
        }
        await bench.service.auditWriter.keepRoom(bench.service.metrics)
        let after = try await bench.store.read { try StoreFigures.find(in: $0) }
        #expect(after.auditBytes == right && after.accounts == 1)
        #expect(try await all(bench).count == 1)
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

    /// A customer has a /48 of IPv6, which is 65,536 networks of the size that sessions show.
    @Test func guessesOfOneCustomerFillNothing() async throws {
        let bench = try await AuthBench.open { $0.limits.signInsPerAddress.burst = 0 }
        for number in 0..<500 {
            let origin = CallOrigin(address: ClientAddress("2001:db8:1:\(String(number, radix: 16))::1"))
            await AuditedCall.$current.withValue(AuditedCall(Auth.SignIn.method, origin)) {
                _ = await wireError {
                    try await bench.service.signIns.signIn(
                        Auth.SignIn(email: "u\(number)@example.com", password: "wrong"), origin)
                }
            }
        }
        await bench.service.auditWriter.write()
        let kept = try await all(bench)
        #expect(kept.count == FailureLog.perSubjectMax && Set(kept.map(\.address)).count == kept.count)
        bench.pass(seconds: 60)
        await bench.service.auditWriter.write()
        let counted = try await all(bench).filter { $0.count != nil }
        #expect(counted.map(\.count) == [500 - FailureLog.perSubjectMax])
        #expect(counted.map(\.address) == [ClientAddress("2001:db8:1::1").site])
    }

    // MARK: FailureLog

    @Test func aFloodOfOneNetworkKeepsFewOfEachAccount() {
        var log = FailureLog()
        for number in 0..<100 { log.failed(failure(nil, "n\(number)"), of: "flood", now: 60_000) }
        for _ in 0..<5 { log.failed(failure("masuo", nil), of: "flood", now: 60_000) }
        let kept = log.taken(now: 60_000).map(\.record)
        #expect(kept.count == FailureLog.perSubjectMax + FailureLog.perAccountMin)
        #expect(kept.filter { $0.uid == "masuo" }.count == FailureLog.perAccountMin)
        // Of another network as many as ever.
        for _ in 0..<20 { log.failed(failure("masuo", nil), of: "home", now: 60_000) }
        #expect(log.taken(now: 60_000).count == FailureLog.perSubjectMax - FailureLog.perAccountMin)
        for number in 0..<1_000 { log.failed(failure("u\(number)", nil), of: "flood", now: 60_000) }
        #expect(
            log.taken(now: 60_000).count == FailureLog.reservedPerNetworkMax - FailureLog.perAccountMin)
    }

    @Test func aFloodOfManyNetworksKeepsSomeOfAccounts() {
        var log = FailureLog()
        for number in 0..<10_000 { log.failed(failure(nil, "n\(number)"), of: "a\(number)", now: 60_000) }
        for number in 0..<1_000 { log.failed(failure("u\(number)", nil), of: "b\(number)", now: 60_000) }
        #expect(log.taken(now: 60_000).count == FailureLog.perMinuteMax + FailureLog.reservedMax)
        log.failed(failure("masuo", nil), of: "home", now: 120_000)
        #expect(log.taken(now: 120_000).contains { $0.record.uid == "masuo" })
    }

    private func failure(_ uid: String?, _ name: String?) -> AuditRecord {
        var record = AuditRecord(.signInFailed, of: uid)
        (record.email, record.reason) = (name, "INVALID_PASSWORD")
        return record
    }

    @Test func manyAddressesWriteSoManyEntriesAMinute() {
        var log = FailureLog()
        for number in 0..<10_000 { log.failed(failure(nil, "n\(number)"), of: "a\(number)", now: 60_000) }
        #expect(log.taken(now: 61_000).count == FailureLog.perMinuteMax)
        let rest = log.taken(now: 120_000)
        #expect(rest.count == FailureLog.countedMax + 1)
        #expect(rest.compactMap(\.record.count).reduce(0, +) == 10_000 - FailureLog.perMinuteMax)
        #expect(log.isEmpty && log.taken(now: 180_000).isEmpty)
    }

    @Test func oneAccountGuessedFromManyAddressesIsCounted() {
        var log = FailureLog()
        for number in 0..<100 { log.failed(failure(nil, "masuo"), of: "a\(number)", now: 60_000) }
        #expect(log.taken(now: 60_000).count == FailureLog.perSubjectMax)
        log.failed(failure(nil, "other"), of: "b", now: 60_001)
        #expect(log.taken(now: 60_002).count == 1)
        // At the end of the service the rest of the minute is not lost.
        let end = log.takenAtEnd(now: 60_003)
        #expect(end.compactMap(\.record.count).reduce(0, +) == 100 - FailureLog.perSubjectMax)
    }

    @Test func eachMinuteBeginsAnew() {
        var log = FailureLog()
        for minute in 1...3 {
            for _ in 0..<FailureLog.perSubjectMax {
                log.failed(failure(nil, nil), of: "a", now: Int64(minute) * 60_000)
            }
            #expect(log.taken(now: Int64(minute) * 60_000).count == FailureLog.perSubjectMax)
        }
    }
}

/// Counts reads and writes.
private final class CountingStore: WrappedStore {
    let store: any Store
    private let state = Mutex((reads: 0, writes: 0))

    init(_ store: any Store) { self.store = store }

    var counts: (reads: Int, writes: Int) { state.withLock { $0 } }
    func reset() { state.withLock { $0 = (0, 0) } }

    func submit(_ write: any StoreWrite) {
        state.withLock { $0.writes += 1 }
        store.submit(write)
    }

    func submitRead(of client: String?, isLong: Bool, _ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.reads += 1 }
        store.submitRead(of: client, isLong: isLong, body)
    }
}
