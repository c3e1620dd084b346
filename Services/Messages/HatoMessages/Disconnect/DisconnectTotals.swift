import HatoTree
import Synchronization

/// What all connections together have left to be written, and those of each client. Changed in write closures only.
///
/// A client may take more while as much stays free as it then has, the first rule of `ProcessBudget`: so clients that
/// take as much as they can leave something for every other client.
final class DisconnectTotals: Sendable {
    /// The bytes that one connection has left, by the client they are counted for.
    typealias Charges = [String: Int]

    private struct State {
        var entries = 0
        var bytes = 0
        var clients: Charges = [:]
    }

    private let state = Mutex(State())
    private let metrics: MessagesMetrics
    let limits: MessagesLimits

    init(_ metrics: MessagesMetrics, _ limits: MessagesLimits) {
        self.metrics = metrics
        self.limits = limits
    }

    /// A connection leaves `after` where it left `before`.
    ///
    /// - Parameters:
    ///   - client: The caller's client, for which the growth is counted. Nil: an administrator, without a limit.
    ///   - charges: Of the connection.
    /// - Throws: `onDisconnectFull` when it would grow over a limit; nothing is counted then.
    func replace(
        _ before: OwnedTree, by after: OwnedTree, for client: String?, _ charges: inout Charges
    ) throws(MessagesError) {
        let growth = after.byteCount - before.byteCount
        var left = charges
        let entries: Result<Int, MessagesError> = state.withLock { state in
            guard growth <= 0 || state.bytes + growth <= limits.onDisconnectServiceBytesMax else {
                return .failure(.onDisconnectFull(ofClient: false))
            }
            if growth > 0, let client {
                let held = state.clients[client, default: 0]
                guard held + growth <= limits.onDisconnectClientBytesMax else {
                    return .failure(.onDisconnectFull(ofClient: true))
                }
                guard held + growth <= limits.onDisconnectServiceBytesMax - state.bytes - growth else {
                    return .failure(.onDisconnectFull(ofClient: false))
                }
                state.clients[client] = held + growth
                left[client, default: 0] += growth
            } else if growth < 0 {
                Self.takeBack(-growth, of: client, from: &left, &state.clients)
            }
            state.bytes += growth
            state.entries += after.count - before.count
            return .success(state.entries)
        }
        metrics.keepsOnDisconnect(try entries.get())
        charges = left
    }

    /// What is taken back may have been left by others that the connection spoke for.
    private static func takeBack(
        _ count: Int, of client: String?, from charges: inout Charges, _ clients: inout Charges
    ) {
        var rest = count
        let others = charges.keys.filter { $0 != client }.sorted()
        for name in (client.map { [$0] } ?? []) + others {
            let part = min(rest, charges[name, default: 0])
            rest -= part
            subtract(part, of: name, from: &charges)
            subtract(part, of: name, from: &clients)
        }
    }

    private static func subtract(_ count: Int, of name: String, from charges: inout Charges) {
        let left = charges[name, default: 0] - count
        charges[name] = left > 0 ? left : nil
    }

    /// What was kept already, whatever it takes.
    func keep(_ tree: OwnedTree) { count(tree, sign: 1) }

    func forget(_ tree: OwnedTree) { count(tree, sign: -1) }

    /// The connection has left nothing any more.
    func end(_ charges: Charges) {
        state.withLock { state in
            for (name, count) in charges { Self.subtract(count, of: name, from: &state.clients) }
        }
    }

    private func count(_ tree: OwnedTree, sign: Int) {
        let entries = state.withLock { state in
            state.bytes += sign * tree.byteCount
            state.entries += sign * tree.count
            return state.entries
        }
        metrics.keepsOnDisconnect(entries)
    }
}
