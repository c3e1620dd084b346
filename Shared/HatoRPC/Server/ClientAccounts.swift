import HatoModel
import Synchronization

/// The accounts of the clients that have connections. Part of `ProcessBudget`.
final class ClientAccounts: Sendable {
    private struct Client {
        var account: ClientAccount
        var connections = 0
    }

    private let clients = Mutex<[String: Client]>([:])

    /// The account of a client; to be left as often as it is entered.
    func enter(_ name: String) -> ClientAccount {
        clients.withLock { clients in
            var client = clients[name] ?? Client(account: ClientAccount(name))
            client.connections += 1
            clients[name] = client
            return client.account
        }
    }

    func leave(_ account: ClientAccount) {
        clients.withLock { clients in
            guard var client = clients[account.name] else { return }
            client.connections -= 1
            clients[account.name] = client.connections > 0 ? client : nil
        }
    }

    /// The account of the client of this name, as long as it is entered.
    func account(of name: String) -> ClientAccount? { clients.withLock { $0[name]?.account } }
}

/// What one client holds over all its connections.
final class ClientAccount: Sendable {
    let name: String
    private let used = Atomic(0)
    private let reads = Atomic(0)
    /// Whether the one request runs that may although the client holds too much.
    let isStartExempt = Atomic(false)
    private let waiting = Atomic(false)

    init(_ name: String) { self.name = name }

    /// A user, wherever the connections come from; else the address.
    static func name(_ caller: Caller, _ address: @autoclosure () -> ClientAddress) -> String {
        // Made for each read: concatenation is faster than interpolation.
        if case .user(let user) = caller { return "user " + user.uid }
        return "address \(address().network)"
    }

    var usedBytes: Int { used.load(ordering: .sequentiallyConsistent) }

    /// Reads of the client that have a small reservation.
    var smallReads: Int { reads.load(ordering: .sequentiallyConsistent) }

    func addReads(_ change: Int) { reads.wrappingAdd(change, ordering: .sequentiallyConsistent) }

    func add(_ change: Int) { used.wrappingAdd(change, ordering: .sequentiallyConsistent) }

    /// Whether something of the client may wait for it to hold less.
    var isWaiting: Bool { waiting.load(ordering: .sequentiallyConsistent) }

    /// Set before what the client holds is looked at, so that what is given back later is noticed.
    func setWaiting(_ isWaiting: Bool) { waiting.store(isWaiting, ordering: .sequentiallyConsistent) }
}
