import Synchronization

/// Counts the requested codes of each address and each account, in memory and bounded; a restart clears the counts.
final class CodeRequestLedger: Sendable {
    /// For what requests are counted.
    enum Subject: Hashable, Sendable {
        /// An address, for requests from anywhere.
        case address(String)
        case account(String)
        /// An address, for requests from one network.
        case requester(String, network: String)
    }

    /// What becomes of a request.
    enum Admission: Hashable, Sendable {
        case admitted
        /// Others have requested too much for the address: this one counts, and no mail is sent. To say so would show
        /// more than who asks may know.
        case silent(retryAfterMilliseconds: Int64)
        case refused(retryAfterMilliseconds: Int64)
    }

    private let limits: AuthLimits
    private let now: @Sendable () -> Int64
    private let requests = Mutex(RecentEntries<Subject, [Int64]>())

    init(_ limits: AuthLimits, now: @escaping @Sendable () -> Int64) {
        self.limits = limits
        self.now = now
    }

    /// Counts a request for all subjects; for none when one of them has requested too much. Where only an address has,
    /// it counts for the others.
    func take(_ subjects: [Subject]) -> Admission {
        let now = now()
        let policy = CodeRequestPolicy(
            pauseMs: limits.codePauseMs, perHourMax: limits.codesPerHourMax)
        return requests.withLock { requests in
            var (own, others): (Int64, Int64) = (0, 0)
            for subject in subjects {
                let wait = policy.wait(requests[subject] ?? [], now: now) ?? 0
                if case .address = subject { others = max(others, wait) } else { own = max(own, wait) }
            }
            if own > 0 { return .refused(retryAfterMilliseconds: max(own, others)) }
            for subject in subjects {
                if others > 0, case .address = subject { continue }
                let times = requests[subject] ?? []
                _ = requests.evict(for: subject, countMax: limits.attemptEntriesMax)
                requests.set(subject, policy.requested(times, now: now))
            }
            return others > 0 ? .silent(retryAfterMilliseconds: others) : .admitted
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
