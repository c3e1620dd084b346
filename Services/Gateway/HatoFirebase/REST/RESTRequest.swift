public import HatoModel

/// A request of the REST interface (spec realtime-database §7), read from its head.
///
/// A request becomes one call of a service (`operation`), or at most two: `step` says what follows the result or the
/// error of a call. Each thing that is wrong with a head is thrown with the status and the text of the specification.
/// ```swift
/// let request = try RESTRequest(head, namespaces)
/// var operation = try request.operation(body, as: identity)
/// // … the call …
/// switch request.step(after: operation, result) { … }
/// ```
public struct RESTRequest: Sendable, Hashable {
    /// What is done to the target.
    public enum Method: String, Sendable, Hashable {
        case get = "GET"
        case head = "HEAD"
        case put = "PUT"
        case post = "POST"
        case patch = "PATCH"
        case delete = "DELETE"

        /// Whether it reads.
        var isRead: Bool { self == .get || self == .head }
    }

    /// The caller that rules see in place of an administrator.
    public enum Override: Sendable, Hashable {
        /// `auth` is null.
        case signedOut
        /// `auth` is this JSON object.
        case variable([UInt8])
    }

    /// The etags of a request (spec §7.4).
    struct Conditions: Sendable, Hashable {
        var wantsETag = false
        var ifMatch: String?
        var ifNoneMatch: String?

        var isEmpty: Bool { ifMatch == nil && ifNoneMatch == nil }
    }

    /// What is done.
    public let method: Method
    /// What it is done to.
    public let target: RESTTarget
    /// The database.
    public let database: DatabaseName
    /// The token or key that the request shows; nil: none.
    public let credential: String?
    /// The caller that rules see where the credential is an administrator's; nil: the owner of the credential.
    public let override: Override?
    /// Whether the response is an endless stream of events: `EventStreamStateMachine`.
    public let isStream: Bool
    let options: RESTOptions
    let query: TreeQuery?
    let conditions: Conditions

    /// What the read may take, in milliseconds; nil: as long as the service allows.
    public var timeoutMs: Int? { method.isRead ? options.timeoutMs : nil }
    /// Whether the request has a body that `operation` needs.
    public var takesBody: Bool { method == .put || method == .post || method == .patch }

    /// Reads a head whose target is a path of the database. OPTIONS is no request of this kind: `RESTAnswer.preflight`.
    public init(
        _ head: RESTHead, _ namespaces: NamespaceTable, _ limits: RESTLimits = RESTLimits()
    ) throws(RESTError) {
        let parts = head.parts
        target = try RESTTarget(parts.path)
        let parameters = try QueryParameters(parts.query)
        method = try Self.method(head, parameters)
        switch target {
        case .rules where method != .put && !method.isRead: throw RESTErrors.rulesMethod
        case .coverage where !method.isRead: throw RESTErrors.coverageMethod
        default: break
        }
        guard
            let database = namespaces.database(namespace: parameters["ns"], host: head.header("host"))
        else { throw RESTErrors.notFound }
        self.database = database
        credential = Self.credential(head, parameters)
        override = try parameters["auth_variable_override"].map { text throws(RESTError) in try Self.override(text) }
        options = try RESTOptions(parameters, limits)
        conditions = Conditions(
            wantsETag: head.header("x-firebase-etag")?.hasSameLetters(as: "true") ?? false,
            ifMatch: head.header("if-match"), ifNoneMatch: head.header("if-none-match"))
        isStream = method == .get && target.isNode && Self.acceptsEvents(head)
        if options.callback != nil, !method.isRead { throw RESTErrors.callbackOfWrite }
        guard case .node(let path) = target else {
            query = nil
            return
        }
        let rest = Combination(
            isRead: method.isRead, isStream: isStream, hasQuery: parameters.hasQuery, isPage: parameters.isKeyPage,
            options: options, conditions: conditions)
        try rest.check(method)
        query = try options.isShallow ? RESTQuery.keyPage(parameters) : RESTQuery.query(parameters)
        if path.isPriority, query != nil || isStream || method == .post || method == .patch {
            throw RESTErrors.invalidPath
        }
    }

    private static func method(_ head: RESTHead, _ parameters: QueryParameters) throws(RESTError) -> Method {
        guard let method = Method(rawValue: head.method) else { throw RESTErrors.method }
        guard method == .post,
            let other = head.header("x-http-method-override") ?? parameters["x-http-method-override"]
        else { return method }
        for possible in [Method.put, .patch, .delete, .post] where other.hasSameLetters(as: possible.rawValue) {
            return possible
        }
        throw RESTErrors.method
    }

    private static func credential(_ head: RESTHead, _ parameters: QueryParameters) -> String? {
        if let credential = parameters.nonEmpty("auth") ?? parameters.nonEmpty("access_token") { return credential }
        guard let header = head.header("authorization") else { return nil }
        let scheme = "bearer "
        guard header.utf8.count > scheme.utf8.count, header.prefix(scheme.utf8.count).hasSameLetters(as: scheme) else {
            return nil
        }
        return String(header.dropFirst(scheme.utf8.count)).trimmed
    }

    /// Levels of an object for the rules: `auth.token.firebase.identities` are four.
    private static let overrideDepthMax = 32

    private static func override(_ text: String) throws(RESTError) -> Override {
        switch try? JSONParser.parse(text, depth: overrideDepthMax) {
        case .null?: return .signedOut
        case .object(let object)?: return .variable(JSONValue.object(object).encoded)
        default: throw RESTErrors.parameter("auth_variable_override", "a JSON object or null")
        }
    }

    private static func acceptsEvents(_ head: RESTHead) -> Bool {
        guard let accept = head.header("accept") else { return false }
        return accept.utf8.split(separator: UInt8(ascii: ",")).contains { range in
            Substring(range.prefix { $0 != UInt8(ascii: ";") }).trimmed.hasSameLetters(as: "text/event-stream")
        }
    }
}

extension RESTTarget {
    /// Whether it is a node or a priority.
    var isNode: Bool { if case .node = self { true } else { false } }
}

/// What may stand together in a request.
private struct Combination {
    let isRead: Bool
    let isStream: Bool
    let hasQuery: Bool
    /// The query is a page of keys, which a shallow read may have.
    let isPage: Bool
    let options: RESTOptions
    let conditions: RESTRequest.Conditions

    func check(_ method: RESTRequest.Method) throws(RESTError) {
        guard isRead else { return try checkWrite(method) }
        if options.isShallow, hasQuery, !isPage { throw RESTErrors.shallowAndQuery }
        if options.isShallow, options.isExport { throw RESTErrors.shallowAndExport }
        if isStream {
            if options.isShallow { throw RESTErrors.shallowStream }
            return
        }
        if !conditions.isEmpty, options.isShallow || hasQuery || options.printing == .silent {
            throw RESTErrors.mixedCondition
        }
        if conditions.ifMatch != nil { throw RESTErrors.ifMatch }
        if conditions.wantsETag {
            if options.isShallow { throw RESTErrors.shallowAndETag }
            if hasQuery { throw RESTErrors.queryAndETag }
        }
    }

    private func checkWrite(_ method: RESTRequest.Method) throws(RESTError) {
        if hasQuery { throw RESTErrors.queryOfWrite }
        if conditions.ifNoneMatch != nil { throw RESTErrors.ifNoneMatch }
        guard conditions.ifMatch != nil else { return }
        guard method == .put || method == .delete else { throw RESTErrors.ifMatch }
        if options.printing == .silent || options.isShallow { throw RESTErrors.mixedCondition }
    }
}
