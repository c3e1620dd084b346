import HatoModel
import HatoRPC
import HatoStorage

/// Everything that follows: a follower is a position, read for when it is not live. Lives on the publisher's thread.
final class FollowerRegistry {
    typealias FollowCompletion = @Sendable (Result<Messages.Follow.Result, any Error>) -> Void

    private unowned let registry: ListenerRegistry
    private let parts: ServiceParts
    private let line: Publisher.Line
    private var followers: [UInt64: Follower] = [:]

    init(_ registry: ListenerRegistry) {
        self.registry = registry
        parts = registry.parts
        line = registry.line
    }

    var count: Int { followers.count }

    func showFigures(newest: UInt64) {
        let late = followers.values.filter { if case .live = $0.state { false } else { true } }
        let lag = followers.values.map { newest > $0.position ? newest - $0.position : 0 }.max()
        parts.metrics.following(behind: late.count, lag: lag ?? 0)
    }

    /// Opens a follower; `after` nil: from now on, 0: from the oldest change that is kept.
    func follow(
        _ opening: Follower.Opening, _ request: Messages.Follow, at snapshot: any StoreSnapshot,
        completion: @escaping FollowCompletion
    ) {
        do {
            guard followers.count < parts.limits.followersMax else {
                throw MessagesError.tooManyFollowers(max: parts.limits.followersMax)
            }
            let mine = registry.names[opening.connection.id]?.values.filter { followers[$0] != nil }.count ?? 0
            guard mine < parts.limits.followersPerConnectionMax else {
                throw MessagesError.tooManyFollowers(max: parts.limits.followersPerConnectionMax)
            }
            registry.begin(at: snapshot)
            let newest = snapshot.version
            let position = try position(request, of: opening.database, newest: newest)
            let follower = Follower(id: registry.nextID(), opening, position: position, limits: parts.limits)
            followers[follower.id] = follower
            registry.remember(opening.connection, opening.subscription, follower.id)
            parts.metrics.following(followers.count)
            completion(
                .success(
                    Messages.Follow.Result(
                        subscription: opening.subscription, version: position, epoch: parts.store.epoch.description)))
            if position < newest { load(follower) }
        } catch {
            opening.endWatch()
            registry.endIfIdle()
            completion(.failure(error))
        }
    }

    private func position(_ request: Messages.Follow, of database: Database, newest: UInt64) throws -> UInt64 {
        // Also for `after: 0`: who names an epoch wants to hear that it is over before another one's changes.
        let (epoch, firstVersion) = (request.epoch, database.record.firstVersion)
        if let epoch, epoch != parts.store.epoch.description {
            throw MessagesError.unknownVersion(newest: newest, parameter: "epoch")
        }
        guard let after = request.after else { return newest }
        let oldest = parts.store.keptCommits.oldest
        guard after > 0 else { return oldest.map { $0 - 1 } ?? newest }
        guard after <= newest else { throw MessagesError.unknownVersion(newest: newest, parameter: "after") }
        // A follower that resumes at the version before the oldest change resumes at the database's beginning.
        guard after >= firstVersion else { throw MessagesError.compacted(oldest: firstVersion + 1) }
        if after < newest {
            guard let oldest else { throw MessagesError.compacted(oldest: newest + 1) }
            guard after + 1 >= oldest else { throw MessagesError.compacted(oldest: oldest) }
        }
        return after
    }

    func groupBecameDurable(_ group: CommitGroup) {
        var shared = SharedChanges(of: group, parts.store.epoch)
        for follower in followers.values.sorted(by: { $0.id < $1.id }) {
            groupBecameDurable(group, &shared, for: follower)
        }
    }

    /// A live follower is sent the commits of the group that match.
    private func groupBecameDurable(_ group: CommitGroup, _ shared: inout SharedChanges, for follower: Follower) {
        guard case .live = follower.state else { return }
        // A page that was read may have been ahead of this group.
        for item in shared.items(follower.matcher, of: follower.database.id) where item.version > follower.position {
            guard send(item.members, version: item.version, to: follower) else {
                follower.position = item.version - 1
                return waitForDrain(follower)
            }
        }
        follower.position = max(follower.position, group.snapshot.version)
        sayWhereIfSilent(follower, time: parts.now())
    }

    private func send(_ members: EncodedJSON, version: UInt64, to follower: Follower) -> Bool {
        guard
            follower.connection.notify(
                Messages.Change.method, subscription: follower.subscription, members: members)
        else { return false }
        follower.sentVersion = version
        parts.metrics.sentChange(bytes: members.count)
        return true
    }

    private func sayWhereIfSilent(_ follower: Follower, time: Int64) {
        if follower.position - follower.sentVersion >= Follower.silentVersionsMax { sayWhere(follower, time: time) }
    }

    /// Once a minute: a follower whose pattern is quiet must not be left with a position whose changes are forgotten.
    func notifySilentFollowers() {
        for follower in followers.values.sorted(by: { $0.id < $1.id }) where follower.position > follower.sentVersion {
            if case .live = follower.state { sayWhere(follower, time: parts.now()) }
        }
    }

    /// An empty change: lets a follower that nothing matches keep a young position.
    private func sayWhere(_ follower: Follower, time: Int64) {
        let members = Follower.members(version: follower.position, parts.store.epoch, time: time, [])
        _ = send(members, version: follower.position, to: follower)
    }

    // MARK: Catching up

    private func load(_ follower: Follower) {
        follower.state = .loading
        let (line, id, store) = (line, follower.id, parts.store)
        let (position, matcher, database) = (follower.position, follower.matcher, follower.database.id)
        // Only administrators follow: their pages wait for no requests of others from the same address.
        store.submitRead(of: "followers of " + follower.connection.client(speakingAs: .administrator)) {
            let page = Result { try FeedPage.read(after: position, store, matcher, database) }
            line.post { $0.follows.loaded(id, page) }
        }
    }

    private func loaded(_ id: UInt64, _ page: Result<FeedPage, any Error>) {
        guard let follower = followers[id], let current = registry.current else { return }
        switch page {
        case .failure(let error):
            let reason =
                switch error {
                case StoreError.compacted: "compacted"
                default: "unavailable"
                }
            end(follower)
            ListenerRegistry.sendCancelled(follower.connection, follower.subscription, reason)
        case .success(let page):
            for item in page.items {
                guard send(item.members, version: item.version, to: follower) else {
                    follower.position = item.version - 1
                    return waitForDrain(follower)
                }
                follower.position = item.version
            }
            follower.position = page.end
            sayWhereIfSilent(follower, time: page.time)
            if follower.position >= current.version { follower.state = .live } else { load(follower) }
        }
    }

    private func waitForDrain(_ follower: Follower) {
        follower.state = .waiting
        let (line, id) = (line, follower.id)
        follower.connection.onDrain {
            line.post { registry in
                guard let follower = registry.follows.followers[id], case .waiting = follower.state else { return }
                registry.follows.load(follower)
            }
        }
    }

    // MARK: Ending

    /// False when there is no such follower.
    func unfollow(_ id: UInt64) -> Bool {
        guard let follower = followers[id] else { return false }
        end(follower)
        return true
    }

    func databaseDropped(_ id: DatabaseID) {
        for follower in followers.values.filter({ $0.database.id == id }) {
            end(follower)
            ListenerRegistry.sendCancelled(follower.connection, follower.subscription, "database_dropped")
        }
    }

    private func end(_ follower: Follower) {
        followers[follower.id] = nil
        follower.opening.endWatch()
        registry.forget(follower.connection, follower.subscription)
        parts.metrics.following(followers.count)
        registry.endIfIdle()
    }

    func identityChanged(_ id: UInt64, _ change: RPCIdentityChange) {
        guard let follower = followers[id] else { return }
        let reason: String
        switch change {
        case .extended(let caller), .replaced(let caller):
            if caller.isAdministrator { return }
            reason = "permission_denied"
        case .expired: reason = "token_expired"
        case .revoked: reason = "token_revoked"
        }
        end(follower)
        ListenerRegistry.sendCancelled(follower.connection, follower.subscription, reason)
    }
}
