import HatoFollow
import HatoRPC
import Logging

/// What follows the changes of accounts. Each follower has a connection of its own: one whose writes take long stops
/// reading, and no refusal waits for profiles.
struct AccountFollowers: Sendable {
    let refusals: AccountFollower
    /// Nil: there are no profiles.
    let profiles: AccountFollower?
    private let clients: [RPCClient]

    /// Throws the errors of the store.
    init(_ auth: AuthLink, _ parts: ServiceParts, _ queue: CommitQueue, _ logger: Logger) throws {
        let effects = try RefusalEffects(
            parts.store, RefusalRows(prefix: StoreKeys.refusals), auth.authenticator, now: parts.now)
        let client = RPCClient(auth.configuration)
        refusals = AccountFollower(client, effects, logger: logger)
        guard let place = auth.profiles else {
            (profiles, clients) = (nil, [client])
            return
        }
        let other = RPCClient(auth.configuration)
        profiles = AccountFollower(
            other, ProfileEffects(parts, queue, place, auth: other, logger: logger), logger: logger)
        clients = [client, other]
    }

    /// Follows until the task is cancelled.
    func run() async {
        async let refusing: Void = refusals.run()
        await profiles?.run()
        await refusing
    }

    /// Ends the calls that wait for auth.
    func close() async { for client in clients { await client.close() } }
}
