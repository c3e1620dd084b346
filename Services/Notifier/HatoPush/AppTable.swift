import Synchronization

/// What a channel holds for each app, such as its credentials; replaced as a whole when they are read again.
final class AppTable<Entry: Sendable>: Sendable {
    private let entries: Mutex<[String: Entry]>

    init(_ entries: [String: Entry] = [:]) { self.entries = Mutex(entries) }

    /// The entry of an app; nil when it has none.
    subscript(app: String) -> Entry? { entries.withLock { $0[app] } }

    /// Puts other entries in place of all; `make` gets the present ones.
    func replace(_ make: ([String: Entry]) -> [String: Entry]) {
        entries.withLock { $0 = make($0) }
    }
}
