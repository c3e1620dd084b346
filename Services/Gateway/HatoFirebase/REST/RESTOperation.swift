import HatoModel

/// A call of a service: what a request of the REST interface becomes.
public struct RESTOperation: Sendable, Hashable {
    /// The method, e.g. `messages.get`.
    public var method: String { purpose.method }
    /// The params: a JSON object without line ends.
    public let params: [UInt8]
    /// What its result is for.
    let purpose: Purpose

    /// What the result of a call is for.
    enum Purpose: Sendable, Hashable {
        case read
        case listen
        case set
        case push
        case update
        case remove
        case rules
        case newRules
        /// The value of a response with status 412.
        case mismatch
        /// Says why a query has no index: the listener only said that there is none.
        case indexProbe

        /// The method that is called.
        var method: String {
            switch self {
            case .read, .mismatch, .indexProbe: Messages.Get.method
            case .listen: Messages.Listen.method
            case .set: Messages.Set.method
            case .push: Messages.Push.method
            case .update: Messages.Update.method
            case .remove: Messages.Remove.method
            case .rules: Messages.Rules.Get.method
            case .newRules: Messages.Rules.Set.method
            }
        }
    }
}

/// The caller of a method, as a service takes it (protocol §2).
public struct RESTIdentity: Sendable, Hashable {
    /// An ID token, or the key of an administrator; nil: none.
    public var auth: String?
    /// The JSON text of `as`; nil: none.
    public var `as`: [UInt8]?
    /// The IP address of the client, where the gateway forwards it.
    public var from: String?

    public init(auth: String? = nil, as: [UInt8]? = nil, from: String? = nil) {
        self.auth = auth
        self.as = `as`
        self.from = from
    }
}

extension RESTRequest {
    /// The caller of this request where its credential needs no translation.
    ///
    /// - Parameter from: the IP address of the client; nil: none is forwarded.
    public func identity(from: String? = nil) -> RESTIdentity {
        RESTIdentity(auth: credential, as: override?.json, from: from)
    }
}

extension RESTRequest.Override {
    /// The JSON text of `as`.
    public var json: [UInt8] {
        switch self {
        case .signedOut: Array("null".utf8)
        case .variable(let object): Array("{\"variable\":".utf8) + object + Array("}".utf8)
        }
    }
}
