import HatoModel
import HatoStorage

/// How the threads of mailboxes have e-mails: when, and which ones have their own.
///
/// A mailbox has e-mails of their own for few threads at a time. What comes for further ones goes together with what
/// has no thread: else a user that may write to another one in many threads fills the mailbox of that one, and delays
/// the e-mails of all.
struct MailLanes: Sendable {
    let pace: DigestPace
    private let threadsMax: Int
    /// The threads of mailboxes that have e-mails of their own, as far as this transaction has looked for them or made
    /// them: it does not see its own writes.
    private var threads: [String: Set<String>] = [:]

    /// Records of e-mails of a mailbox that are looked at: those that are over are deleted now and then.
    private static let recordsMax = 256

    init(_ policy: DeliveryPolicy, _ limits: NotifierLimits) {
        pace = DigestPace(policy)
        threadsMax = limits.mailThreadsMax
    }

    /// The thread in whose e-mail a notification of `thread` goes: this one, or the empty one.
    mutating func lane(
        for thread: String, at mailbox: String, now: Int64, _ reading: some StoreReading
    ) throws -> String {
        guard !thread.isEmpty else { return "" }
        var known = try threads[mailbox] ?? present(at: mailbox, now: now, reading)
        defer { threads[mailbox] = known }
        if known.contains(thread) { return thread }
        guard known.count < threadsMax else { return "" }
        known.insert(thread)
        return thread
    }

    /// The threads for which something waits, or that had an e-mail a short while ago, as many as there may be.
    private func present(at mailbox: String, now: Int64, _ reading: some StoreReading) throws -> Set<String> {
        var found: Set<String> = []
        for row in try reading.rows(RecordKey(.digest).with(mailbox), limit: Self.recordsMax) {
            let digest = try? RecordCodec.decode(DigestRecord.self, row.value, key: row.key.bytes)
            guard digest?.nextTime(at: now, pace) != nil, let thread = DigestRecord.lane(of: row.key)?.collapseKey,
                !thread.isEmpty
            else { continue }
            found.insert(thread)
        }
        // One row of each lane.
        var range = KeyRange(prefix: RecordKey(.lane).with(mailbox).bytes)
        while found.count < threadsMax, let thread = try Self.firstThread(in: range, reading) {
            if !thread.isEmpty { found.insert(thread) }
            guard let end = Lane(device: mailbox, collapseKey: thread, isDigest: true).prefix.end else { break }
            range.lower = end
        }
        return found
    }

    /// The thread of the first row, of those of lanes of a mailbox; nil without one.
    private static func firstThread(in range: KeyRange, _ reading: some StoreReading) throws -> String? {
        var thread: String?
        try reading.scan(range, reverse: false) { key, _ in
            var reader = RecordKeyReader(key.copied)
            _ = reader.text()
            // The reader passes over the byte that says that there is a key.
            var rest = RecordKeyReader(reader.tail)
            thread = rest.text()
            return .stop
        }
        return thread
    }
}
