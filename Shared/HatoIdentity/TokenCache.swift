import Crypto

/// A cache of verified tokens by the SHA-256 of their text, until they expire: a call with a known token costs one
/// look-up.
///
/// Bounded: tokens have equal lifetimes, so the first added is evicted first.
struct TokenCache {
    private var tokens: [SHA256Digest: VerifiedToken] = [:]
    /// Digests in the order of addition, from `oldest` on.
    private var order: [SHA256Digest] = []
    private var oldest = 0
    private let countMax: Int

    init(countMax: Int) { self.countMax = countMax }

    var count: Int { tokens.count }

    /// `now` in milliseconds.
    func token(_ digest: SHA256Digest, now: Int64) -> VerifiedToken? {
        guard let token = tokens[digest], now < token.expiresAt * 1000 else { return nil }
        return token
    }

    mutating func insert(_ token: VerifiedToken, _ digest: SHA256Digest, now: Int64) {
        guard countMax > 0, tokens.updateValue(token, forKey: digest) == nil else { return }
        order.append(digest)
        while oldest < order.count - 1, tokens.count > countMax || isOver(order[oldest], now: now) {
            tokens[order[oldest]] = nil
            oldest += 1
        }
        if oldest > countMax {
            order.removeFirst(oldest)
            oldest = 0
        }
    }

    private func isOver(_ digest: SHA256Digest, now: Int64) -> Bool {
        guard let token = tokens[digest] else { return true }
        return token.expiresAt * 1000 <= now
    }
}
