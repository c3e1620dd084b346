import Synchronization

/// How often devices and users are sent something: a bucket of tokens for each. A delivery takes a token of its device,
/// and when it has its turn there, one of its user: what waits for one device delays no other device of its user.
///
/// In memory: after a start all buckets are full. The turns that were given stand in the records of deliveries, and
/// last. Turns are given by transactions in their order; the mutex is for the memory only. One whose transaction fails
/// is lost, and with it a few seconds of one device.
final class SendPace: Sendable {
    private struct State {
        var devices: [String: TokenBucket] = [:]
        var users: [String: TokenBucket] = [:]
    }

    /// Buckets that are not full, of devices and of users. When there are more, the fullest half is as if full.
    private static let bucketsMax = 65_536

    private let state = Mutex(State())
    private let device: BucketRate
    private let user: BucketRate

    init(_ limits: NotifierLimits) {
        device = BucketRate(burst: Int64(limits.deviceBurstMax), interval: Int64(limits.deviceIntervalMs))
        user = BucketRate(burst: Int64(limits.userBurstMax), interval: Int64(limits.userIntervalMs))
    }

    /// Turns that are given in advance, in intervals. Those further away may come back when others go as one, and
    /// what was given a turn behind them would wait for nothing.
    private static let intervalsMax: Int64 = 20
    /// The longest time in milliseconds after which one without a turn asks again.
    private static let pauseMax: Int64 = 60_000

    /// When a delivery has its turn, at `now` or later: at its device, and once it has that, at its user. Without a
    /// user (empty `uid`) only the device counts. Writes down the turns that it is given. When its turn would be far
    /// away it gets none, and this is when it asks again: soon at first, then after as long as it has waited.
    func turn(of delivery: inout DeliveryRecord, now: Int64) -> Int64 {
        var pacing = delivery.pacing ?? Pacing(isPaced: true)
        let (name, uid, age) = (delivery.device, delivery.uid, max(0, now - delivery.createdAt))
        let goesAt = state.withLock { state in
            pacing.turn = pacing.turn ?? Self.turn(in: &state.devices, of: name, at: (now, age), device)
            guard let turn = pacing.turn else { return now + Self.pause(of: device, age: age) }
            guard turn <= now, !uid.isEmpty else { return turn }
            pacing.userTurn = pacing.userTurn ?? Self.turn(in: &state.users, of: uid, at: (now, age), user)
            return pacing.userTurn ?? now + Self.pause(of: user, age: age)
        }
        delivery.pacing = pacing
        return goesAt
    }

    private static func pause(of rate: BucketRate, age: Int64) -> Int64 {
        min(pauseMax, max(2 * rate.interval, age))
    }

    /// The turns that a delivery still waits for are not needed; what it had its turn for is used.
    func giveBack(_ pacing: Pacing, at device: String, of uid: String, now: Int64) {
        state.withLock { state in
            if let turn = pacing.turn, turn > now { state.devices[device]?.giveBack(self.device) }
            if let turn = pacing.userTurn, turn > now { state.users[uid]?.giveBack(user) }
        }
    }

    /// Nil when it is far away. The longer one waits, the further away it may be: what comes later does not pass it
    /// for ever.
    private static func turn(
        in buckets: inout [String: TokenBucket], of name: String, at time: (now: Int64, age: Int64), _ rate: BucketRate
    ) -> Int64? {
        let (now, age) = time
        guard rate.interval > 0 else { return now }
        var bucket = buckets[name] ?? TokenBucket()
        let turn = bucket.next(at: now, rate)
        guard turn - now <= intervalsMax * rate.interval + age else { return nil }
        bucket.take(at: now, rate)
        buckets[name] = bucket
        bound(&buckets, at: now)
        return turn
    }

    private static func bound(_ buckets: inout [String: TokenBucket], at now: Int64) {
        guard buckets.count > bucketsMax else { return }
        buckets = buckets.filter { $0.value.fullAt > now }
        guard buckets.count > bucketsMax else { return }
        let emptiest = buckets.sorted { $0.value.fullAt > $1.value.fullAt }.prefix(bucketsMax / 2)
        buckets = Dictionary(emptiest.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    }
}
