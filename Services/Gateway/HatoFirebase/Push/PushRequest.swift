public import HatoModel

/// A request of FCM's HTTP interfaces, or one that reports what a user did with a notification: which call of the
/// notifier it becomes, and which response its result or its error is.
///
/// - `POST /v1/projects/P/messages:send`: FCM HTTP v1 (`FCMMessage`).
/// - `POST /fcm/send`: FCM's old interface (`LegacyFCMMessage`).
/// - `POST /respond`: `notifier.respond`, its params as the body.
public struct PushRequest: Sendable, Hashable {
    /// A call of the notifier.
    public struct Call: Sendable, Hashable {
        /// The name of the method.
        public var method: String
        /// Its params, without `auth` and `from`.
        public var params: JSONObject
        /// Of FCM HTTP v1: nothing is sent.
        var isDryRun = false

        /// Of `notifier.sendToDevice`: how many tokens it names; nil: it is of another method.
        var tokenCount: Int? {
            guard method == Notifier.SendToDevice.method else { return nil }
            return params["token"]?.array?.count ?? 1
        }
    }

    /// The interface.
    enum Dialect: Sendable, Hashable {
        case v1(project: String)
        case legacy
        case respond
    }

    let dialect: Dialect
    /// Whether it is a report: anyone may send one.
    public var isReport: Bool { dialect == .respond }
    private let isPost: Bool
    private let credential: String?

    /// Nil when the path is none of these.
    public init?(_ head: RESTHead) {
        guard let dialect = Self.dialect(head.parts.path) else { return nil }
        self.dialect = dialect
        isPost = head.method == "POST"
        credential = Self.credential(head, dialect)
    }

    private static func dialect(_ path: Substring) -> Dialect? {
        let host = "/fcm.googleapis.com"
        let path = path.hasPrefix(host + "/") ? path.dropFirst(host.count) : path
        if path == "/fcm/send" { return .legacy }
        if path == "/respond" { return .respond }
        let (start, end) = ("/v1/projects/", "/messages:send")
        guard path.hasPrefix(start), path.hasSuffix(end), path.utf8.count > start.utf8.count + end.utf8.count else {
            return nil
        }
        let project = path.dropFirst(start.count).dropLast(end.count)
        return project.utf8.allSatisfy(isProjectByte) && project.utf8.count <= 128 ? .v1(project: String(project)) : nil
    }

    private static func isProjectByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
            UInt8(ascii: ":"):
            true
        default: false
        }
    }

    /// `Bearer` everywhere; the old interface has `key=` too.
    private static func credential(_ head: RESTHead, _ dialect: Dialect) -> String? {
        guard let header = head.header("authorization") else { return nil }
        for scheme in dialect == .legacy ? ["bearer ", "key="] : ["bearer "] {
            guard header.utf8.count > scheme.utf8.count, header.prefix(scheme.utf8.count).hasSameLetters(as: scheme)
            else { continue }
            return String(header.dropFirst(scheme.utf8.count)).trimmed
        }
        return nil
    }

    /// Why the request becomes no call, whatever its body is; nil: the body decides.
    public var headFault: PushFault? {
        guard isPost else { return .method }
        return credential == nil && dialect != .respond ? .noCredential : nil
    }

    /// The call.
    ///
    /// - Parameter memoryMax: bytes of memory that the values of the body may take.
    /// - Throws: `PushFault`.
    public func call(_ body: [UInt8], memoryMax: Int) throws(PushFault) -> Call {
        if let headFault { throw headFault }
        let object = try Self.object(body, memoryMax: memoryMax)
        switch dialect {
        case .v1: return try FCMMessage(object).call
        case .legacy: return try LegacyFCMMessage(object).call
        case .respond: return Call(method: Notifier.Respond.method, params: try report(object))
        }
    }

    /// The params of a report, which name no address and no other user.
    private func report(_ params: JSONObject) throws(PushFault) -> JSONObject {
        for name in ["as", "from"] where params[name] != nil { throw .unknown(name, in: "body") }
        guard credential == nil || params["auth"] == nil else {
            throw .wrong("auth", "'auth' stands beside the header Authorization: give one of the two")
        }
        return params
    }

    private static func object(_ body: [UInt8], memoryMax: Int) throws(PushFault) -> JSONObject {
        var scanner = JSONScanner(depth: nestingMax, memoryMax: memoryMax)
        do throws(JSONError) {
            let object = try scanner.object(body.span)
            try scanner.end(body.span)
            return object
        } catch  where error.reason == .tooManyValues {
            throw .tooLarge
        } catch { throw .noJSON("\(error)") }
    }

    /// A call has two levels more, and services take 64.
    private static let nestingMax = 48

    /// The params as one JSON text.
    ///
    /// - Parameter address: the IP address of the client.
    public func params(of call: Call, from address: String) -> [UInt8] {
        var params = call.params
        params["from"] = .string(address)
        if let credential { params["auth"] = .string(credential) }
        return JSONValue.object(params).encoded
    }

    // MARK: Responses

    /// The response to the result of a call.
    public func response(to call: Call, result: [UInt8]) -> RESTAnswer {
        guard let object = (try? JSONParser.parse(result))?.object else {
            return response(to: .internalError, of: call)
        }
        switch dialect {
        case .v1(let project): return FCMResponse.success(object, of: call, project)
        case .legacy: return LegacyFCMResponse.success(object)
        case .respond: return RESTAnswer(status: 200, body: result)
        }
    }

    /// The response to the error of a call.
    public func response(to error: RPCError, of call: Call) -> RESTAnswer {
        switch dialect {
        case .v1: FCMResponse.failure(error)
        case .legacy: LegacyFCMResponse.failure(error, of: call)
        case .respond: NativeErrorResponse.failure(error)
        }
    }

    /// The response to a request that becomes no call.
    public func response(to fault: PushFault) -> RESTAnswer {
        if fault == .method {
            return RESTAnswer(
                status: 405, contentType: "text/plain; charset=utf-8", headers: [.init("Allow", "POST, OPTIONS")],
                body: Array("Method not allowed\n".utf8))
        }
        return switch dialect {
        case .v1: FCMResponse.refusal(fault)
        case .legacy: LegacyFCMResponse.refusal(fault)
        case .respond: NativeErrorResponse.failure(fault.rpcError)
        }
    }
}
