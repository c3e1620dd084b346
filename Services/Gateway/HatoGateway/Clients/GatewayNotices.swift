import Logging
import Synchronization

/// Logs what clients and services can cause again and again: each kind at most once a minute. Any thread calls.
final class GatewayNotices: Sendable {
    /// What a notice is about.
    enum Kind: Sendable, Hashable, CaseIterable {
        /// A peer that is no trusted proxy names the addresses of clients.
        case unnamedProxy
        /// An address has too many connections.
        case connections
        /// An address sends too many requests.
        case requests
    }

    private let logger: Logger
    private let throttle = Mutex(NoticePauses<Kind>())
    private let start = ContinuousClock.now

    init(_ logger: Logger) { self.logger = logger }

    /// Logs unless one of this kind was logged within the last minute.
    ///
    /// - Parameter peer: the address of its socket, or of the client that a trusted proxy names.
    func notice(_ kind: Kind, from peer: String) {
        let now = ContinuousClock.now - start
        guard let leftOut = throttle.withLock({ $0.occurred(kind, at: now) }) else { return }
        var metadata: Logger.Metadata = ["peer": "\(peer)"]
        if leftOut > 0 { metadata["leftOut"] = "\(leftOut)" }
        logger.notice("\(Self.text(kind))", metadata: metadata)
    }

    private static func text(_ kind: Kind) -> String {
        switch kind {
        case .unnamedProxy:
            "X-Forwarded-For of a peer is ignored: it is not in trusted-proxies, and all that it sends counts for its "
                + "own address"
        case .connections:
            "connections of an address are refused: connections-per-address-max; a proxy belongs into trusted-proxies"
        case .requests:
            "requests of an address are refused: requests-per-address-second-max; a proxy belongs into trusted-proxies"
        }
    }
}

/// When a notice of a kind may be logged: a value, which gets the time.
struct NoticePauses<Kind: Hashable & Sendable>: Sendable {
    /// Between two notices of one kind: it only paces the log.
    static var pause: Duration { .seconds(60) }

    private var last: [Kind: (time: Duration, leftOut: Int)] = [:]

    /// Something of this kind has occurred. Nil: it is left out; otherwise how many were left out before it.
    ///
    /// - Parameter now: of a clock that never goes back.
    mutating func occurred(_ kind: Kind, at now: Duration) -> Int? {
        if let former = last[kind], now - former.time < Self.pause {
            last[kind]?.leftOut &+= 1
            return nil
        }
        let leftOut = last[kind]?.leftOut ?? 0
        last[kind] = (now, 0)
        return leftOut
    }
}
