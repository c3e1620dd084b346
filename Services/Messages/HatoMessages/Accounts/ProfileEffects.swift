import HatoFollow
import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Logging
import Synchronization

/// Keeps `name` and `photo` of each account in the tree, where other users may read them. Each change is one commit,
/// with the position up to which the events of auth are handled. What is there already makes none.
final class ProfileEffects: AccountEffects {
    private let parts: ServiceParts
    private let queue: CommitQueue
    private let place: ProfilePlace
    private let auth: RPCClient
    private let logger: Logger
    /// Its writes keep their order.
    private let session = ConnectionSession(of: nil, client: nil)
    private let state = Mutex(State())

    private struct State {
        /// Handled; perhaps later than the one in the store.
        var position: AccountPosition?
        /// The database that has the profiles.
        var database: DatabaseID?
        /// Events that were handled since the position was written.
        var unwritten = 0
    }

    /// The database is another one than that with the profiles: all are to be written.
    private struct OtherDatabase: Error, CustomStringConvertible {
        var description: String { "the database of the profiles was made anew" }
    }

    /// Writes that are submitted and not durable yet.
    private static let submittedMax = 64
    /// A position without a write is kept after so many events.
    private static let unwrittenMax = 256

    /// - Parameter auth: with a service key for `auth.users.list`.
    init(_ parts: ServiceParts, _ queue: CommitQueue, _ place: ProfilePlace, auth: RPCClient, logger: Logger) {
        self.parts = parts
        self.queue = queue
        self.place = place
        self.auth = auth
        self.logger = logger
    }

    /// Profiles of accounts that were made before the oldest event are read from auth.
    var beginsAtOldest: Bool { false }

    func position() async throws -> AccountPosition? {
        if let position = state.withLock({ $0.position }) { return position }
        return try await parts.store.read { [self] snapshot in
            let database = parts.catalogue.databases(of: snapshot).byName[place.database]?.id
            state.withLock { $0.database = database }
            return try ProfileRows.position(of: place, database, in: snapshot)
        }
    }

    // MARK: Events

    func handle(_ events: [Auth.Event]) async throws {
        guard let last = events.last else { return }
        let position = AccountPosition(last.position, epoch: last.epoch)
        let steps = events.compactMap { Step($0) }
        do {
            try await write(steps)
            let isDue = state.withLock { state in
                state.unwritten = steps.isEmpty ? state.unwritten + events.count : 0
                return state.unwritten >= Self.unwrittenMax
            }
            if isDue { try await keep(position) }
        } catch {
            // From where the store is: some steps are made.
            state.withLock { $0.position = nil }
            throw error
        }
        state.withLock { $0.position = position }
    }

    /// What one event changes.
    private struct Step {
        var uid: String
        /// Nil: the account is no more.
        var profile: Auth.PublicProfile?
        /// Nil while all accounts are read.
        var position: AccountPosition?

        init(_ uid: String, _ profile: Auth.PublicProfile?) {
            self.uid = uid
            self.profile = profile
        }

        /// Nil for an event that changes no profile.
        init?(_ event: Auth.Event) {
            guard let uid = event.uid else { return nil }
            switch event.type {
            case .created, .updated: self.init(uid, event.profile ?? Auth.PublicProfile())
            case .deleted: self.init(uid, nil)
            case .disabled, .enabled, .revoked, .signedOut, .keyRevoked: return nil
            }
            position = AccountPosition(event.position, epoch: event.epoch)
        }

        /// The two children.
        var values: JSONObject {
            let name = profile?.displayName ?? profile?.username
            let photo = profile?.photoUrl.flatMap { ProfileEffects.isShown($0) ? $0 : nil }
            return ["name": name.map { .string($0) } ?? .null, "photo": photo.map { .string($0) } ?? .null]
        }
    }

    /// An address that a page can show without a request in clear, and that ends no attribute of HTML where an app
    /// writes it there as it is.
    static func isShown(_ photo: String) -> Bool {
        let prefix = "https://"
        guard photo.lowercased().hasPrefix(prefix), photo.utf8.count > prefix.utf8.count else { return false }
        return photo.utf8.allSatisfy { byte in
            byte > 0x20 && byte != 0x7F && !Self.bytesOfMarkup.contains(byte)
        }
    }

    private static let bytesOfMarkup: [UInt8] = ["\"", "'", "<", ">", "`"].flatMap { Array($0.utf8) }

    // MARK: All accounts

    func missed(until start: AccountStart) async throws {
        let database = try await parts.store.read { [parts, place] snapshot in
            guard let database = parts.catalogue.databases(of: snapshot).byName[place.database] else {
                throw MessagesError.databaseNotFound(place.database)
            }
            return database.id
        }
        state.withLock { ($0.position, $0.database) = (nil, database) }
        var known: [UInt8]? = []
        var after: String?
        var count = 0
        while let start = known {
            let page = try await auth.call(Auth.Users.List(after: after))
            let uids = Set(page.users.map(\.uid))
            let end = page.after
            let former = try await parts.store.read { try ProfileRows.uids(after: start, through: end, in: $0) }
            try await write(
                page.users.map { Step($0.uid, $0.profile) } + former.filter { !uids.contains($0) }.map { Step($0, nil) }
            )
            count += page.users.count
            (after, known) = (end, end.map { Array($0.utf8) })
        }
        try await keep(start.position)
        state.withLock { $0.position = start.position }
        logger.info("the profiles of all accounts are in the tree", metadata: ["accounts": "\(count)"])
    }

    private func keep(_ position: AccountPosition) async throws {
        guard let database = state.withLock({ $0.database }) else { return }
        _ = try await parts.store.write { [place] in ProfileRows.put(position, of: place, database, in: $0) }
        state.withLock { $0.unwritten = 0 }
    }

    // MARK: Writing

    /// Makes all steps, in order; throws the first error. What comes after a step that failed is not made.
    private func write(_ steps: [Step]) async throws {
        var rest = steps[...]
        while !rest.isEmpty {
            let part = rest.prefix(Self.submittedMax)
            rest = rest.dropFirst(Self.submittedMax)
            try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
                let run = Run(part.count, done)
                for step in part { submit(step, run) }
            }
        }
    }

    private func submit(_ step: Step, _ run: Run) {
        let database = state.withLock { $0.database }
        queue.submit(from: session) { [queue, place, parts] transaction in
            try run.begin()
            do {
                guard let database, try parts.catalogue.database(place.database, in: transaction).id == database else {
                    throw OtherDatabase()
                }
                // No key of the tree: nothing can stand there.
                if let path = try? place.path(of: step.uid) {
                    let mutation = Mutation.update(step.values, at: path)
                    _ = try queue.commit(
                        Write(database: place.database, mutation: mutation, caller: .administrator), in: transaction)
                }
                ProfileRows.put(step.uid, isThere: step.profile != nil, in: transaction)
                if let position = step.position { ProfileRows.put(position, of: place, database, in: transaction) }
            } catch {
                run.failed(error)
                throw error
            }
        } completion: { result in
            if case .failure(let error) = result { run.failed(error) }
            run.ended()
        }
    }

    /// Steps that are submitted together.
    private final class Run: Sendable {
        private struct State {
            var left: Int
            var failure: (any Error)?
        }

        private let state: Mutex<State>
        private let done: CheckedContinuation<Void, any Error>

        init(_ count: Int, _ done: CheckedContinuation<Void, any Error>) {
            state = Mutex(State(left: count))
            self.done = done
        }

        /// Throws the error of an earlier step.
        func begin() throws { if let failure = state.withLock({ $0.failure }) { throw failure } }

        func failed(_ error: any Error) { state.withLock { $0.failure = $0.failure ?? error } }

        /// Called once for each step.
        func ended() {
            let (isLast, failure) = state.withLock { state in
                state.left -= 1
                return (state.left == 0, state.failure)
            }
            guard isLast else { return }
            if let failure { done.resume(throwing: failure) } else { done.resume() }
        }
    }
}

extension Auth.Account {
    /// What other users may read of the account.
    fileprivate var profile: Auth.PublicProfile {
        Auth.PublicProfile(displayName: displayName, username: username, photoUrl: photoUrl)
    }
}
