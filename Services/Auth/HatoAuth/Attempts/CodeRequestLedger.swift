import Synchronization

/// Counts the requested codes of each address and each account, in memory and bounded; a restart clears the counts.
final class CodeRequestLedger: Sendable {
    /// For what requests are counted.
    enum Subject: Hashable, Sendable {
        case address(String)
        case account(String)
        /// An address, for a network from which its account has signed in before: others do not use up its codes.
        case known(String, network: String)
    }

    private let limits: AuthLimits
    private let now: @Sendable () -> Int64
    private let requests = Mutex(RecentEntries<Subject, [Int64]>())

    init(_ limits: AuthLimits, now: @escaping @Sendable () -> Int64) {
        self.limits = limits
        self.now = now
    }

    /// Counts a request for all subjects; when one of them has requested too much, for none, and returns the
    /// milliseconds to wait.
    func take(_ subjects: [Subject]) -> Int64? {
        let now = now()
        let policy = CodeRequestPolicy(
            pauseMs: limits.codePauseMs, perHourMax: limits.codesPerHourMax)
        return requests.withLock { requests in
            let times = subjects.map { requests[$0] ?? [] }
            if let wait = times.compactMap({ policy.wait($0, now: now) }).max() { return wait }
            for (subject, times) in zip(subjects, times) {
                _ = requests.evict(for: subject, countMax: limits.attemptEntriesMax)
                requests.set(subject, policy.requested(times, now: now))
            }
            return nil
        }
    }

    /// Undoes a `take` whose code is not sent.
    func giveBack(_ subjects: [Subject]) {
        requests.withLock { requests in
            for subject in subjects {
                guard let times = requests[subject] else { continue }
                requests.set(subject, times.count > 1 ? Array(times.dropLast()) : nil)
            }
        }
    }
}

/// Decides whether a code may be requested: one in a while, and only so many in an hour.
struct CodeRequestPolicy: Sendable {
    /// Between two requests; 0: none.
    var pauseMs: Int64
    /// 0: no limit.
    var perHourMax: Int

    private static let hour: Int64 = 3_600_000

    /// Nil when a code may be requested now, otherwise the milliseconds to wait.
    ///
    /// - Parameter times: of the earlier requests, in their order.
    func wait(_ times: [Int64], now: Int64) -> Int64? {
        // Times of the future are those of a clock that was set back.
        let times = times.filter { $0 <= now }
        var waits: [Int64] = []
        if let last = times.last { waits.append(last + pauseMs - now) }
        let recent = times.filter { $0 > now - Self.hour }
        if perHourMax > 0, recent.count >= perHourMax {
            waits.append(recent[recent.count - perHourMax] + Self.hour - now)
        }
        return waits.filter { $0 > 0 }.max()
    }

    /// The times with one more.
    func requested(_ times: [Int64], now: Int64) -> [Int64] {
        Array((times.filter { $0 <= now } + [now]).suffix(max(1, perHourMax)))
    }
}
