import HatoModel

/// Decides which failures of a minute are kept one by one, and counts the rest: failures cost an attacker nothing, and
/// must not fill the disk.
///
/// A value: the time is a parameter, in milliseconds since 1970.
struct FailureLog: Sendable {
    /// Of one network, and of one account or name, in a minute.
    static let perSubjectMax = 10
    /// Of all together in a minute.
    static let perMinuteMax = 600
    /// The rest is counted for so many networks, and beyond for all others together.
    static let countedMax = 100

    /// Failures that are too many to be kept.
    private struct Rest: Sendable, Hashable {
        var method: String?
        var reason: String?
        var address: String?
    }

    private var minute: Int64 = 0
    private var kept: [(time: Int64, record: AuditRecord)] = []
    private var keptInMinute = 0
    private var counts: [String: Int] = [:]
    private var rest: [Rest: Int] = [:]

    /// A failure at `now`.
    mutating func failed(_ record: AuditRecord, now: Int64) {
        begin(now)
        let subjects = [record.address.map { "address \($0)" }, (record.uid ?? record.email).map { "account \($0)" }]
            .compactMap { $0 }
        let isFull =
            keptInMinute >= Self.perMinuteMax || subjects.contains { counts[$0, default: 0] >= Self.perSubjectMax }
        guard isFull else {
            for subject in subjects { counts[subject, default: 0] += 1 }
            keptInMinute += 1
            kept.append((now, record))
            return
        }
        var key = Rest(method: record.method, reason: record.reason, address: record.address)
        if rest[key] == nil, rest.count >= Self.countedMax { key.address = nil }
        rest[key, default: 0] += 1
    }

    /// What is to be written at `now`, with the time of each; the rest of a minute when that is over.
    mutating func taken(now: Int64) -> [(time: Int64, record: AuditRecord)] {
        begin(now)
        defer { kept = [] }
        return kept
    }

    /// Everything, at the end of the service.
    mutating func takenAtEnd(now: Int64) -> [(time: Int64, record: AuditRecord)] {
        end(now)
        return taken(now: now)
    }

    var isEmpty: Bool { kept.isEmpty && rest.isEmpty }

    private mutating func begin(_ now: Int64) {
        let current = now / 60_000
        guard current != minute else { return }
        end(now)
        minute = current
    }

    private mutating func end(_ now: Int64) {
        for (key, count) in rest {
            var record = AuditRecord(.signInFailed)
            (record.method, record.reason, record.address, record.count) = (key.method, key.reason, key.address, count)
            kept.append((now, record))
        }
        (rest, counts, keptInMinute) = ([:], [:], 0)
    }
}
