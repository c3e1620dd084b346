public import HatoModel
import HatoStorage

/// Why a follower is not opened, or not ended.
public enum FollowRefusal: Error, Sendable, Hashable {
    /// There are as many as the service allows.
    case tooManyFollowers(Int)
    /// The connection has as many as one may have.
    case tooManyOfConnection(Int)
    /// The connection has no follower of this name.
    case unknownSubscription(String)
    /// The service never had the position in that epoch.
    case unknownPosition
    /// The events after the position are no longer kept; `oldest` is the oldest version that is.
    case compacted(oldest: UInt64)
}

extension FollowRefusal: RPCErrorConvertible {
    public var rpcError: RPCError {
        switch self {
        case .tooManyFollowers(let max):
            .resourceExhausted(reason: "too_many_followers", "There are \(max) followers, which is the limit")
        case .tooManyOfConnection(let max):
            .resourceExhausted(
                reason: "too_many_followers", "This connection has \(max) followers, which is the limit for one")
        case .unknownSubscription(let name):
            .notFound(reason: "subscription_not_found", "This connection has no subscription \"\(name)\"")
        case .unknownPosition:
            .failedPrecondition(reason: "unknown_version", "This service never had that position in that epoch")
        case .compacted(let oldest):
            .failedPrecondition(
                reason: "compacted",
                "Events before position \(EventPosition(version: oldest, index: 0).number) are no longer kept",
                data: ["oldest": .number(Double(EventPosition(version: oldest, index: 0).number))])
        }
    }

    /// Checks the parameters of a follower. Throws `invalid_argument` that names the member.
    ///
    /// - Parameter service: the name before the dot of the method, e.g. `notifier`.
    public static func check(after: Int?, epoch: String?, of service: String) throws(RPCError) {
        if let after, after < 0 {
            throw .invalidArgument(
                "after", reason: "invalid_position",
                "after is the position of a \(service).event, e.g. 44040192, or 0 for the oldest that is kept")
        }
        if let epoch, !StoreEpoch.isEpoch(epoch) {
            throw .invalidArgument(
                "epoch", reason: "invalid_epoch",
                "'epoch' must be the 32 hexadecimal digits that \(service).follow returns as epoch, "
                    + "e.g. \"0123456789abcdef0123456789abcdef\"")
        }
    }
}
