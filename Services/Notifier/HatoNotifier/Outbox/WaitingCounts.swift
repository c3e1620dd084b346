import Crypto
import HatoRPC
import Synchronization

/// A user in the counts of what waits and in the keys of `waiting`: 64 bits of the SHA-256 of the uid. A million users
/// take tens of megabytes so, however long their uids are.
struct UserDigest: Hashable, Sendable {
    let value: UInt64

    init(_ value: UInt64) { self.value = value }

    init(uid: String) {
        value = SHA256.hash(data: Array(uid.utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// How many deliveries of each user have not ended, as the rows in `waiting` say it.
///
/// Changed by transactions in their turn, so that each transaction finds what its predecessors left, durable or not. A
/// transaction that throws takes its changes back; one that fails later ends the store, and the counts with it. The
/// mutex is for the memory only: transactions run one at a time.
final class WaitingCounts: Sendable {
    private struct State {
        /// The user with the most comes first.
        var users = IndexedHeap<UserDigest, Int>()
        var total = 0
        /// The same, where each user counts at most `shareMax`.
        var boundedTotal = 0
        /// The changes of the transaction under way.
        var changes: [(user: UserDigest, change: Int)] = []
        /// The row that a user lost last: what is older has ended or is being attempted. Only saves walking over those.
        var lost: [UserDigest: RecordKey] = [:]
        /// Those of the transaction under way.
        var losses: [UserDigest: RecordKey] = [:]

        mutating func add(_ change: Int, to user: UserDigest, shareMax: Int) {
            let former = -(users.priority(of: user) ?? 0), count = former + change
            total += change
            boundedTotal += min(count, shareMax) - min(former, shareMax)
            if count > 0 { users.insert(user, -count) } else { users.remove(user) }
        }

        mutating func end() {
            (changes, losses) = ([], [:])
        }
    }

    /// Users whose last loss is remembered; when there are more, all are forgotten.
    private static let lostMax = 256

    private let state = Mutex(State())
    private let shareMax: Int

    /// - Parameter shareMax: of how many deliveries of one user `boundedTotal` takes account.
    init(shareMax: Int) { self.shareMax = shareMax }

    /// The count of all users.
    var total: Int { state.withLock { $0.total } }

    /// The same, where what one user has beyond its share does not count: it is the first that is dropped when too many
    /// wait.
    var boundedTotal: Int { state.withLock { $0.boundedTotal } }

    /// Runs `body`, and takes back what it added when it throws or `keeping` is false.
    func transaction<Outcome>(keeping: Bool = true, _ body: () throws -> Outcome) throws -> Outcome {
        state.withLock { $0.end() }
        do {
            let outcome = try body()
            if keeping { keep() } else { takeBack() }
            return outcome
        } catch {
            takeBack()
            throw error
        }
    }

    private func keep() {
        state.withLock { state in
            if state.lost.count + state.losses.count > Self.lostMax { state.lost = [:] }
            for (user, row) in state.losses.prefix(Self.lostMax) { state.lost[user] = row }
            state.end()
        }
    }

    private func takeBack() {
        state.withLock { state in
            // The last one first, so that no count is below 0 in between.
            for (user, change) in state.changes.reversed() { state.add(-change, to: user, shareMax: shareMax) }
            state.end()
        }
    }

    func add(_ change: Int, to user: UserDigest) {
        state.withLock { state in
            state.add(change, to: user, shareMax: shareMax)
            state.changes.append((user, change))
        }
    }

    /// How much waits for a user.
    func count(of user: UserDigest) -> Int { state.withLock { -($0.users.priority(of: user) ?? 0) } }

    /// The user with the most, of those that are not in `others`.
    func longest(besides others: Set<UserDigest>) -> UserDigest? {
        state.withLock { state in
            var passedOver: [(key: UserDigest, priority: Int)] = []
            while let first = state.users.first, others.contains(first.key) {
                passedOver.append(first)
                state.users.remove(first.key)
            }
            let longest = state.users.first?.key
            for entry in passedOver { state.users.insert(entry.key, entry.priority) }
            return longest
        }
    }

    /// Where to look for the oldest delivery of a user that waits: behind the one it lost last.
    func lastLost(by user: UserDigest) -> RecordKey? { state.withLock { $0.lost[user] } }

    func lost(_ row: RecordKey, of user: UserDigest) { state.withLock { $0.losses[user] = row } }
}
