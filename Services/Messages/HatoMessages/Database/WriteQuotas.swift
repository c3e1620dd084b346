import HatoModel
import HatoRPC
import Synchronization

/// How much each client may still write: so many writes a second, so many bytes a minute (spec realtime-database §1),
/// each off at 0. Administrators may write what they like.
///
/// Both are token buckets. A client that was quiet has a second's writes and a minute's bytes; a write is taken when
/// there is a write and a byte left, so one that is larger than what is left is taken, and paid for by waiting
/// afterwards.
final class WriteQuotas: Sendable {
    private struct Bucket {
        /// Of what has no limit nothing is taken.
        var writes: Double
        /// Below zero after a write that was larger than what was left.
        var bytes: Double
        /// Milliseconds since 1970.
        var filledAt: Int64
    }

    /// The buckets of the clients that wrote last, in two generations: when the younger one is full, the older one is
    /// dropped, at no cost for each client. So a client is forgotten only after as many others have written as one
    /// generation holds.
    private struct Buckets {
        private var younger: [String: Bucket] = [:]
        private var older: [String: Bucket] = [:]

        /// Clients of one generation: some 150 bytes each.
        private static let generationMax = 32_768

        var count: Int { younger.count + older.count }

        subscript(client: String) -> Bucket? { younger[client] ?? older[client] }

        mutating func set(_ bucket: Bucket, of client: String) {
            if younger.count >= Self.generationMax, younger[client] == nil {
                older = younger
                younger = [:]
            }
            older[client] = nil
            younger[client] = bucket
        }
    }

    private let writesPerSecond: Double
    private let bytesPerMinute: Double
    private let buckets = Mutex(Buckets())

    init(_ limits: MessagesLimits) {
        writesPerSecond = Double(limits.clientWritesPerSecondMax)
        bytesPerMinute = Double(limits.clientBytesPerMinuteMax)
    }

    var isOff: Bool { writesPerSecond <= 0 && bytesPerMinute <= 0 }

    /// Throws `MessagesError.writesTooFast` when the client has to wait.
    func take(_ context: RPCContext, now: @autoclosure () -> Int64) throws(MessagesError) {
        if isOff || context.caller.isAdministrator || context.isByAdministrator { return }
        try take(context.client, bytes: context.byteCount, now: now())
    }

    func take(_ client: String, bytes: Int, now: Int64) throws(MessagesError) {
        let refusal = buckets.withLock { buckets -> MessagesError? in
            var bucket = filled(buckets[client], now)
            if let refusal = self.refusal(bucket) { return refusal }
            if writesPerSecond > 0 { bucket.writes -= 1 }
            if bytesPerMinute > 0 { bucket.bytes -= Double(bytes) }
            buckets.set(bucket, of: client)
            return nil
        }
        if let refusal { throw refusal }
    }

    /// How many clients are remembered.
    var clientCount: Int { buckets.withLock { $0.count } }

    private func filled(_ bucket: Bucket?, _ now: Int64) -> Bucket {
        guard var bucket else { return Bucket(writes: writesPerSecond, bytes: bytesPerMinute, filledAt: now) }
        // A clock that was set back fills nothing, and does not empty what is there.
        let elapsed = Double(max(0, now - bucket.filledAt))
        bucket.writes = min(writesPerSecond, bucket.writes + elapsed * writesPerSecond / 1_000)
        bucket.bytes = min(bytesPerMinute, bucket.bytes + elapsed * bytesPerMinute / 60_000)
        bucket.filledAt = now
        return bucket
    }

    private func refusal(_ bucket: Bucket) -> MessagesError? {
        if writesPerSecond > 0, bucket.writes < 1 - Self.rounding {
            let wait = (1 - bucket.writes) * 1_000 / writesPerSecond
            return .writesTooFast(.writes(perSecond: Int(writesPerSecond)), retryAfterMs: Self.milliseconds(wait))
        }
        if bytesPerMinute > 0, bucket.bytes < 1 - Self.rounding {
            let wait = (1 - bucket.bytes) * 60_000 / bytesPerMinute
            return .writesTooFast(.bytes(perMinute: Int(bytesPerMinute)), retryAfterMs: Self.milliseconds(wait))
        }
        return nil
    }

    /// What many small additions may be off by.
    private static let rounding = 1e-6

    private static func milliseconds(_ wait: Double) -> Int { max(1, Int((wait - rounding).rounded(.up))) }
}
