import HatoModel
public import HatoRPC

extension RPCHealth {
    /// Adds a check of whether the changes of accounts are followed. While they should be and are not, the service is
    /// degraded: it accepts tokens of users that are no more.
    ///
    /// - Parameter follower: nil: no key is set for it.
    public mutating func add(_ follower: AccountFollower?, as name: String) {
        guard let follower else {
            checks[name] = "setting outgoing-key-file is missing: not followed"
            return
        }
        let problem = follower.problem
        checks[name] = .string(problem ?? "following")
        if problem != nil, status == .ready { status = .degraded }
    }
}
