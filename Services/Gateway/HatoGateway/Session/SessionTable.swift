/// A session that a later request of its client can name.
protocol NamedSession: AnyObject {
    /// The id of the session that its client knows.
    var secret: SessionSecret { get }
    /// Its client has begun another session in its place.
    func wasReplaced()
}

/// The sessions of one event loop.
final class SessionTable {
    private var sessions: [SessionSecret.Place: any NamedSession] = [:]

    /// A place for a new session.
    func newPlace(on loop: Int) -> SessionSecret.Place {
        while true {
            let place = SessionSecret.Place(loop: loop)
            if sessions[place] == nil { return place }
        }
    }

    func insert(_ session: any NamedSession) { sessions[session.secret.place] = session }

    func remove(_ session: any NamedSession) {
        guard let other = sessions[session.secret.place], other === session else { return }
        sessions[session.secret.place] = nil
    }

    /// The session with this id; nil when there is none, or the secret is another one.
    func session(_ secret: SessionSecret) -> (any NamedSession)? {
        guard let session = sessions[secret.place], session.secret.isSame(as: secret) else { return nil }
        return session
    }
}
