public import HatoModel

/// A request of a client (spec realtime-database §8.4), without its number.
public enum SessionRequest: Sendable, Hashable {
    /// `s`, `appcheck`, `unappeck`: a request that gets `ok` and has no effect.
    case noted
    /// `q`: starts a listen.
    case listen(Listen)
    /// `n`: ends a listen.
    case unlisten(path: TreePath, query: WireQuery)
    /// `g`: reads once.
    case get(path: TreePath, query: WireQuery)
    /// `p`: replaces a node; with a hash only if the node has it.
    case set(path: TreePath, value: ArraySlice<UInt8>, hash: String?)
    /// `m`: replaces several nodes.
    case update(path: TreePath, values: ArraySlice<UInt8>)
    /// `o`: replaces a node when the session ends.
    case onDisconnectSet(path: TreePath, value: ArraySlice<UInt8>)
    /// `om`: replaces several nodes when the session ends.
    case onDisconnectUpdate(path: TreePath, values: ArraySlice<UInt8>)
    /// `oc`: takes back what `o` and `om` registered at and below a path.
    case onDisconnectCancel(path: TreePath)
    /// `auth`, `gauth`: signs in.
    case authenticate(SessionCredential)
    /// `unauth`: signs out.
    case signOut
    /// Another action.
    case unknown

    /// What a client wants to listen to.
    public struct Listen: Sendable, Hashable {
        /// The node, or the parent of the children that `query` selects.
        public var path: TreePath
        /// Which children.
        public var query: WireQuery
        /// The hash of the value that the client has; nil if it says none, or what cannot be a hash.
        public var hash: String?
        /// The number that comes with each push for this listen; nil for a default query.
        public var tag: Int64?

        public init(path: TreePath, query: WireQuery, hash: String? = nil, tag: Int64? = nil) {
            self.path = path
            self.query = query
            self.hash = hash
            self.tag = tag
        }
    }
}

/// A credential as the client sent it, and whose eyes the rules shall see with.
public struct SessionCredential: Sendable, Hashable {
    /// An ID token, a key, an emulator's `owner` or anything else.
    public var text: String
    /// Whether it came as a token (`auth`) and not as an opaque text (`gauth`).
    public var isToken: Bool
    /// The identity for the rules, which only an administrator may choose.
    public var override: Override

    public init(_ text: String, isToken: Bool, override: Override = .none) {
        self.text = text
        self.isToken = isToken
        self.override = override
    }

    /// The identity for the rules.
    public enum Override: Sendable, Hashable {
        /// That of the credential.
        case none
        /// No user is signed in (`noauth`).
        case signedOut
        /// Exactly this JSON object, in one line, is `auth` (`authvar`).
        case variable([UInt8])
    }

    /// The params of `session.authenticate`, in one line.
    ///
    /// - Parameter auth: what to show instead of the client's text, such as the key of an emulator's `owner`; nil: the
    ///   client's.
    public func params(auth: String? = nil) -> [UInt8] {
        var writer = JSONWriter(capacity: 64 + text.utf8.count)
        writer.beginObject()
        writer.member("auth")
        writer.write(auth ?? text)
        switch override {
        case .none: break
        case .signedOut:
            writer.member("as")
            writer.writeNull()
        case .variable(let variable):
            writer.member("as")
            writer.beginObject()
            writer.member("variable")
            writer.write(encoded: variable)
            writer.endObject()
        }
        writer.endObject()
        return writer.bytes
    }
}

extension SessionRequest {
    /// The request of `action`. Throws `ArgumentError` for a body that does not fit.
    init(_ action: String, _ body: MessageBody, _ limits: SessionLimits) throws(ArgumentError) {
        switch action {
        case "s", "appcheck", "unappeck": self = .noted
        case "q": self = .listen(try Listen(body, limits))
        case "n": self = .unlisten(path: try body.path, query: try body.query(limits))
        case "g": self = .get(path: try body.path, query: try body.query(limits))
        case "p": self = .set(path: try body.path, value: try body.value, hash: try body.text("h", body.hash))
        case "m": self = .update(path: try body.path, values: try body.values)
        case "o": self = .onDisconnectSet(path: try body.path, value: try body.value)
        case "om": self = .onDisconnectUpdate(path: try body.path, values: try body.values)
        case "oc": self = .onDisconnectCancel(path: try body.path)
        case "auth", "gauth": self = .authenticate(try SessionCredential(body, isToken: action == "auth"))
        case "unauth": self = .signOut
        default: self = .unknown
        }
    }
}

extension SessionRequest.Listen {
    fileprivate init(_ body: MessageBody, _ limits: SessionLimits) throws(ArgumentError) {
        let hash = try body.text("h", body.hash)
        self.init(
            path: try body.path, query: try body.query(limits), hash: ValueHash.isHash(hash) ? hash : nil,
            tag: try body.tag)
        guard tag != nil || query.native == .none else {
            throw ArgumentError(reason: "invalid_tag", "A listen with a query needs a tag, e.g. \"t\":1")
        }
    }
}

extension SessionCredential {
    fileprivate init(_ body: MessageBody, isToken: Bool) throws(ArgumentError) {
        guard let text = try body.text("cred", body.credential) else {
            throw ArgumentError(reason: "missing_credential", "\"cred\" is missing, e.g. \"cred\":\"eyJhbGciOi…\"")
        }
        var override = Override.none
        if body.noAuth?.equals("true") == true {
            override = .signedOut
        } else if let variable = body.authVariable, !variable.equals("null") {
            guard variable.first == UInt8(ascii: "{") else {
                throw ArgumentError(
                    reason: "invalid_authvar", "\"authvar\" must be an object, e.g. {\"uid\":\"masuo\"}")
            }
            var writer = JSONWriter(capacity: variable.count)
            writer.write(passed: variable)
            override = .variable(writer.bytes)
        }
        self.init(text, isToken: isToken, override: override)
    }
}

/// The simple hash of a value (spec realtime-database §8.5), as text.
enum ValueHash {
    /// The native etag of no value, whose hash is the empty text.
    static let ofNothing = "null_etag"

    /// Whether a text can be the hash of a value: 20 bytes in base64.
    static func isHash(_ text: String?) -> Bool {
        guard let text, text.utf8.count == 28, text.utf8.last == UInt8(ascii: "=") else { return false }
        return Base64.standard.decode(text.utf8.dropLast())?.count == 20
    }
}
