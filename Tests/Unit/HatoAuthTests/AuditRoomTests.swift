import HatoModel
import HatoStorage
import TestStores
import Testing

@testable import HatoAuth

/// Which entries of the audit are deleted first, when they are written late or the clock is set back.
@Suite(.timeLimit(.minutes(10)))
struct AuditRoomTests {
    private static let bytesMax = 20_000

    /// A service that has looked at all entries, has those of administrators alone, and takes some more.
    private func bench() async throws -> AuthBench {
        let bench = try await AuthBench.open { $0.limits.auditBytesMax = Self.bytesMax }
        while try await bytes(bench) <= Self.bytesMax {
            bench.pass(seconds: 1_000)
            try await add(100, by: "a", to: bench)
        }
        await bench.service.auditWriter.keepRoom(bench.service.metrics)
        #expect(try await bytes(bench) <= Self.bytesMax)
        _ = try await bench.store.write { rows in
            let old = try AuditRows.oldest(AuditRows.OldPage(countMax: 100), in: rows)
            var figures = try StoreFigures.find(in: rows)
            for key in old.keys { rows.deleteRow(key) }
            figures.addAudit(bytes: -old.bytes)
            figures.put(in: rows)
        }
        return bench
    }

    /// - Parameter late: milliseconds between the time in their keys and now.
    private func add(_ count: Int, by administrator: String? = nil, late: Int64 = 0, to bench: AuthBench) async throws {
        _ = try await bench.store.write { [time = bench.now - late] rows in
            var figures = try StoreFigures.find(in: rows)
            for index in 0..<count {
                var record = AuditRecord(.updated)
                record.by = administrator
                let id = AuditID(time: time, version: rows.nextVersion, index: index)
                figures.addAudit(bytes: AuditRows.put(record, id, in: rows))
            }
            figures.put(in: rows)
        }
    }

    private func bytes(_ bench: AuthBench) async throws -> Int {
        try await bench.store.read { try StoreFigures.find(in: $0).auditBytes }
    }

    /// The times of the entries of administrators, or of users.
    private func times(ofAdministrators: Bool, _ bench: AuthBench) async throws -> [[UInt8]] {
        try await bench.store.read { rows in
            var times: [[UInt8]] = []
            try rows.rows(AuthKey.audits) { key, value in
                if (try AuditRecord(value).by != nil) == ofAdministrators { times.append(Array(key.prefix(9))) }
                return true
            }
            return times
        }
    }

    @Test func entriesThatAreWrittenLateGoInTheirTurn() async throws {
        let bench = try await bench()
        let administrators = try await times(ofAdministrators: true, bench)
        // The last entry that was looked at is of now.
        try await add(5, late: 500, to: bench)
        let late = try #require(try await times(ofAdministrators: false, bench).first)
        bench.pass(seconds: 600)
        while try await bytes(bench) <= Self.bytesMax { try await add(20, to: bench) }
        await bench.service.auditWriter.keepRoom(bench.service.metrics)
        #expect(try await times(ofAdministrators: true, bench) == administrators)
        let left = try await times(ofAdministrators: false, bench)
        #expect(!left.isEmpty && !left.contains(late), "the oldest go first")
    }

    @Test func entriesOfAClockThatWasSetBackGoBeforeThoseOfAdministrators() async throws {
        let bench = try await bench()
        let administrators = try await times(ofAdministrators: true, bench)
        // Entries of administrators are older, and newer.
        bench.pass(seconds: -1_500)
        while try await bytes(bench) <= Self.bytesMax { try await add(20, to: bench) }
        let users = try await times(ofAdministrators: false, bench)
        bench.pass(seconds: 7_200)
        await bench.service.auditWriter.keepRoom(bench.service.metrics)
        #expect(try await bytes(bench) <= Self.bytesMax)
        #expect(try await times(ofAdministrators: true, bench) == administrators)
        #expect(try await times(ofAdministrators: false, bench).count < users.count)
    }
}
