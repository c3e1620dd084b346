import HatoModel
import NIOCore

/// A call on its way.
struct OutgoingCall: Sendable {
    enum Completion: Sendable {
        case result(@Sendable (Result<[UInt8], RPCError>) -> Void)
        case subscription(SubscriptionEnding, @Sendable (Result<RPCSubscription, RPCError>) -> Void)
    }

    var id: UInt64
    var method: String
    /// The params object as JSON text.
    var params: [UInt8]
    var deadline: NIODeadline
    /// The call fails (`too_big`) when its response has more bytes.
    var responseBytesMax = Int.max
    var completion: Completion

    func fail(_ error: RPCError) {
        switch completion {
        case .result(let body): body(.failure(error))
        case .subscription(_, let body): body(.failure(error))
        }
    }
}

/// A subscription as the link knows it: its reader holds it, and one without a reader is forgotten.
struct OpenSubscription {
    weak var reader: RPCSubscription?
    var ending: SubscriptionEnding
}

/// How a subscription is ended on the server: `messages.listen` by `messages.unlisten`, `notifier.follow` by
/// `notifier.unfollow`. Every method that opens one has such a counterpart, which takes `subscription`.
struct SubscriptionEnding: Sendable {
    /// Nil when the opening method's name has no words.
    var method: String?
    /// The credential of the opening call, where it had one of its own: it is for ending too.
    var credential: JSONValue?

    init(of method: String, credential: JSONValue?) {
        self.credential = credential
        guard let dot = method.lastIndex(of: ".") else { return }
        self.method = "\(method[...dot])un\(method[method.index(after: dot)...])"
    }

    /// The params object as JSON text.
    func params(_ subscription: String) -> [UInt8] {
        var params: JSONObject = ["subscription": .string(subscription)]
        if let credential { params["auth"] = credential }
        return EncodedJSON(.object(params)).bytes
    }
}
