import HatoModel

/// Decides which failures of a minute are kept one by one, and counts the rest: failures cost an attacker nothing, and
/// must not fill the disk.
///
/// A network is what a customer has: the /48 of an IPv6 address. A flood of one, or of many, does not keep those of
/// accounts out: some of each are kept besides.
///
/// A value: the time is a parameter, in milliseconds since 1970.
struct FailureLog: Sendable {
    /// Of one network, and of one account or name, in a minute.
    static let perSubjectMax = 10
    /// Of all together in a minute.
    static let perMinuteMax = 600
    /// Besides, of accounts whose network, or the minute, is full: of each account until it has so many,
    static let perAccountMin = 3
    /// of one network,
    static let reservedPerNetworkMax = 50
    /// and of all together.
    static let reservedMax = 200
    /// The rest is counted for so many networks, and beyond for all others together.
    static let countedMax = 100

    /// Failures that are too many to be kept.
    private struct Rest: Sendable, Hashable {
        var method: String?
        var reason: String?
        var network: String?
    }

    private enum Subject: Sendable, Hashable {
        case network(String)
        /// The uid, or the code of a name.
        case account(String)
        case reserved(network: String)
    }

    private var minute: Int64 = 0
    private var kept: [(time: Int64, record: AuditRecord)] = []
    private var keptInMinute = 0
    private var reservedInMinute = 0
    private var counts: [Subject: Int] = [:]
    private var rest: [Rest: Int] = [:]

    /// A failure at `now`.
    ///
    /// - Parameter network: what the customer has; nil for a call without a socket.
    mutating func failed(_ record: AuditRecord, of network: String?, now: Int64) {
        begin(now)
        if takePlace(record, network) {
            kept.append((now, record))
            return
        }
        var key = Rest(method: record.method, reason: record.reason, network: network)
        if rest[key] == nil, rest.count >= Self.countedMax { key.network = nil }
        rest[key, default: 0] += 1
    }

    /// Whether it is kept by itself.
    private mutating func takePlace(_ record: AuditRecord, _ network: String?) -> Bool {
        let account = (record.uid ?? record.email).map { Subject.account($0) }
        let ofAccount = account.map { counts[$0, default: 0] } ?? 0
        guard ofAccount < Self.perSubjectMax else { return false }
        let subject = network.map { Subject.network($0) }
        let isNetworkFull = subject.map { counts[$0, default: 0] >= Self.perSubjectMax } ?? false
        if keptInMinute < Self.perMinuteMax, !isNetworkFull {
            keptInMinute += 1
            if let subject { counts[subject, default: 0] += 1 }
        } else {
            let reserved = network.map { Subject.reserved(network: $0) }
            guard record.uid != nil, ofAccount < Self.perAccountMin, reservedInMinute < Self.reservedMax,
                reserved.map({ counts[$0, default: 0] < Self.reservedPerNetworkMax }) ?? true
            else { return false }
            reservedInMinute += 1
            if let reserved { counts[reserved, default: 0] += 1 }
        }
        if let account { counts[account, default: 0] += 1 }
        return true
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
            (record.method, record.reason, record.address, record.count) = (key.method, key.reason, key.network, count)
            kept.append((now, record))
        }
        (rest, counts, keptInMinute, reservedInMinute) = ([:], [:], 0, 0)
    }
}
