import HatoModel
import HatoRPC
import Synchronization

@testable import HatoMessages

/// A connection without a socket: keeps what it is sent until the history looks at it.
final class HistoryPeer: ListenerPeer {
    enum Item: Sendable {
        case opened(String, Messages.Listen.Result)
        case refused(String, String)
        case notification(method: String, subscription: String, EncodedJSON)
        /// The response to a write of its own, which may have changed nothing.
        case answered(UInt64, hasWritten: Bool)

        var text: String {
            switch self {
            case .opened(let subscription, let result): "\(subscription) is open at \(result.version)"
            case .refused(let subscription, let reason): "\(subscription) is refused: \(reason)"
            case .notification(_, let subscription, let members): "\(subscription): \(members.text)"
            case .answered(let version, _): "answered \(version)"
            }
        }
    }

    private struct State {
        var isFull = false
        var isClosed = false
        /// Something was refused since the peer was last known to have everything.
        var hasRefused = false
        var inbox: [Item] = []
        var drains: [@Sendable () -> Void] = []
        var closes: [@Sendable () -> Void] = []
    }

    let id: UInt64
    private let state = Mutex(State())

    init(id: UInt64) { self.id = id }

    func client(speakingAs caller: Caller) -> String { "peer" }

    func notify(_ method: String, subscription: String, members: EncodedJSON) -> Bool {
        state.withLock { state in
            guard !state.isFull, !state.isClosed else {
                state.hasRefused = true
                return false
            }
            state.inbox.append(.notification(method: method, subscription: subscription, members))
            return true
        }
    }

    func receive(_ item: Item) { state.withLock { $0.inbox.append(item) } }

    func onDrain(_ drained: @escaping @Sendable () -> Void) { state.withLock { $0.drains.append(drained) } }

    func whenClosed(_ closed: @escaping @Sendable () -> Void) { state.withLock { $0.closes.append(closed) } }

    var isClosed: Bool { state.withLock { $0.isClosed } }
    var isFull: Bool {
        get { state.withLock { $0.isFull } }
        set { state.withLock { $0.isFull = newValue } }
    }
    var hasRefused: Bool {
        get { state.withLock { $0.hasRefused } }
        set { state.withLock { $0.hasRefused = newValue } }
    }

    /// Whether a listener waits for space.
    var hasDrains: Bool { state.withLock { !$0.drains.isEmpty } }

    func takeInbox() -> [Item] {
        state.withLock { state in
            defer { state.inbox = [] }
            return state.inbox
        }
    }

    /// Calls those that wait for space, if there is any.
    func drain() -> Bool {
        let drains = state.withLock { state -> [@Sendable () -> Void] in
            guard !state.isFull, !state.isClosed else { return [] }
            defer { state.drains = [] }
            return state.drains
        }
        for drain in drains { drain() }
        return !drains.isEmpty
    }

    func close() {
        let closes = state.withLock { state in
            state.isClosed = true
            state.drains = []
            defer { state.closes = [] }
            return state.closes
        }
        for close in closes { close() }
    }
}
