import Synchronization

/// The signing keys as of the newest commit that changed them, readable from every thread.
final class CurrentKeys: Sendable {
    private struct State {
        var ring: SigningKeyRing
        var version: UInt64
    }

    private let state: Mutex<State>

    init(_ ring: SigningKeyRing) { state = Mutex(State(ring: ring, version: 0)) }

    var ring: SigningKeyRing { state.withLock { $0.ring } }

    /// Stores the keys of a commit, unless those of a later one are stored: two changes may complete in any order.
    ///
    /// - Parameter replaced: uses the keys of the later ones last; runs under the lock.
    func take(_ ring: SigningKeyRing, version: UInt64, _ replaced: (SigningKeyRing) -> Void) {
        state.withLock { state in
            guard version > state.version else { return }
            state = State(ring: ring, version: version)
            replaced(ring)
        }
    }
}
