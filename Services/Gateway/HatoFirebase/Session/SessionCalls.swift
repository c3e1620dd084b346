import HatoModel

/// The native calls of a session that have no response yet.
struct SessionCalls {
    /// A call, and what its response is for.
    struct Call {
        var purpose: Purpose
        /// The place of the response among the responses; nil when it is sent as soon as it is there.
        var ticket: Int?
        /// The number of the client's request.
        var number: Int64
        /// Bytes of its params.
        var bytes: Int
    }

    /// What a response is for.
    enum Purpose {
        /// Whether there is the database; the hello has this time.
        case existence(Int64)
        case write
        case onDisconnect
        case get(Read)
        /// The number of the listen.
        case listen(Int)
        case unlisten
        case authenticate(SessionCredential)
        case signOut
        /// No request waits for it.
        case discarded

        /// The kind of its errors.
        var operation: StatusWords.Operation {
            switch self {
            case .write: .write
            case .onDisconnect: .onDisconnect
            case .get, .existence, .discarded: .get
            case .listen, .unlisten: .listen
            case .authenticate, .signOut: .auth
            }
        }
    }

    /// A read that may be repeated while an index is being built.
    struct Read {
        var params: [UInt8]
        /// How often it was tried.
        var tries = 1
    }

    private var calls: [Int: Call] = [:]
    private var lastNumber = 0
    /// Bytes of the params of all calls.
    private(set) var bytes = 0
    /// Calls that change the identity.
    private(set) var identityChanges = 0

    /// Adds a call and returns its number, which was never used in this session.
    mutating func add(_ call: Call) -> Int {
        lastNumber += 1
        calls[lastNumber] = call
        count(call, 1)
        return lastNumber
    }

    /// The call with this number, which ends now.
    mutating func take(_ number: Int) -> Call? {
        guard let call = calls.removeValue(forKey: number) else { return nil }
        count(call, -1)
        return call
    }

    private mutating func count(_ call: Call, _ step: Int) {
        bytes += step * call.bytes
        if case .authenticate = call.purpose { identityChanges += step }
        if case .signOut = call.purpose { identityChanges += step }
    }
}
