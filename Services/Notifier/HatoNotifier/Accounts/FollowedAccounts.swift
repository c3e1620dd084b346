import HatoFollow
import HatoIdentity
import HatoRPC
import Logging

/// What follows the changes of accounts, with its own connection to auth.
struct FollowedAccounts: Sendable {
    let follower: AccountFollower
    /// The users as they are now.
    let current: CurrentAccounts
    private let client: RPCClient
    private let devices: AccountDevices

    /// - Parameter auth: how to reach auth, with a service key.
    /// - Throws: the errors of the store.
    init(
        _ auth: RPCClientConfiguration, _ outbox: Outbox, _ authenticator: ServiceAuthenticator, logger: Logger
    ) throws {
        client = RPCClient(auth)
        current = CurrentAccounts(auth, now: outbox.time.now)
        devices = AccountDevices(outbox, auth: client, current, notices: ThrottledNotices(logger))
        let effects = try RefusalEffects(
            outbox.store, RefusalRows(prefix: RecordKey(.refusal).bytes), authenticator, dependents: devices,
            now: outbox.time.now)
        follower = AccountFollower(client, effects, logger: logger)
    }

    /// Follows, and removes what is kept of users and devices that are gone, until the task is cancelled.
    func run() async {
        async let following: Void = follower.run()
        await devices.run()
        await following
    }

    /// Ends the calls that wait for auth.
    func close() async {
        await client.close()
        await current.close()
    }
}
