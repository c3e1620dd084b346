import HatoStorage
import Synchronization

/// Lets each client have a bounded number of requests under way in a queue that all clients share: a flood of one
/// client waits here, and others pass. May be used from any thread.
final class ClientTurns: Sendable {
    typealias Body = @Sendable (_ end: @escaping @Sendable () -> Void) -> Void

    private struct Client {
        var underWay = 0
        var waiting = FirstInFirstOut<Body>()
    }

    private let countMax: Int
    private let clients = Mutex<[String: Client]>([:])

    init(countMax: Int) { self.countMax = max(1, countMax) }

    /// Clients with requests under way.
    var clientCount: Int { clients.withLock { $0.count } }

    /// Runs `body` when fewer of the client's are under way: now, on this thread, or later. It calls `end` once.
    func take(_ name: String, _ body: @escaping Body) {
        let runsNow = clients.withLock { clients in
            var client = clients.removeValue(forKey: name) ?? Client()
            let runsNow = client.underWay < countMax
            if runsNow { client.underWay += 1 } else { client.waiting.append(body) }
            clients[name] = client
            return runsNow
        }
        if runsNow { run(body, name) }
    }

    private func run(_ body: Body, _ name: String) { body { [self] in ended(name) } }

    private func ended(_ name: String) {
        let next = clients.withLock { clients -> Body? in
            guard var client = clients.removeValue(forKey: name) else { return nil }
            let next = client.waiting.takeFirst()
            if next == nil { client.underWay -= 1 }
            if client.underWay > 0 { clients[name] = client }
            return next
        }
        if let next { run(next, name) }
    }
}
