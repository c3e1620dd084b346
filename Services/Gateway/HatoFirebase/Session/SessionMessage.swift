import HatoModel

/// A message of a client (spec realtime-database §8.3).
///
/// All of it is checked as strictly as services check their lines: what passes through cannot break one.
public enum SessionMessage: Sendable, Hashable {
    /// Of the connection itself.
    case control(Control)
    /// A request with its number, which its response repeats.
    case request(Int64, SessionRequest)

    /// A message of the connection itself.
    public enum Control: Sendable, Hashable {
        /// Is the server there?
        case ping
        /// The client will send on the socket (spec §8.9).
        case switchAcknowledged
        /// The client's last message over polls.
        case endOfTransmission
        /// Anything else, which has no meaning.
        case other
    }

    /// Why a message cannot be handled.
    public enum Failure: Error, Sendable, Hashable {
        /// It is a request, which gets a response.
        case refused(Int64, StatusWords)
        /// It has no number to respond to; the text says what is wrong.
        case unreadable(String)
    }

    /// Reads what a transport has received.
    public init(_ received: ReceivedMessage, _ limits: SessionLimits = SessionLimits()) throws(Failure) {
        switch received {
        case .whole(let bytes): try self.init(bytes, limits)
        case .oversized(let start, let end):
            guard let number = RequestNumber.find(inStart: start[...], end: end[...]) else {
                throw .unreadable("The message is too large, and has no number that can be found")
            }
            throw .refused(number, .writeTooBig)
        }
    }

    /// Reads one message.
    public init(_ bytes: [UInt8], _ limits: SessionLimits = SessionLimits()) throws(Failure) {
        let parts: MessageParts
        do { parts = try MessageParts(bytes) } catch {
            // A put without a response would come again after each reconnect.
            guard let number = RequestNumber.find(inStart: bytes[...], end: bytes[...]) else {
                throw .unreadable("The message is no JSON: \(error)")
            }
            throw .refused(number, .failure("Invalid data; couldn't parse JSON object, array, or value. (\(error))"))
        }
        if parts.layer == "c" {
            self = .control(Control(parts.type))
            return
        }
        guard parts.layer == "d", let number = parts.number else {
            throw .unreadable("The message is neither a request nor a control message")
        }
        guard let action = parts.action else { throw .refused(number, .unknownAction) }
        do { self = .request(number, try SessionRequest(action, parts.body, limits)) } catch {
            throw .refused(number, .failure(error.message))
        }
    }
}

extension SessionMessage.Control {
    fileprivate init(_ type: String?) {
        switch type {
        case "p": self = .ping
        case "a": self = .switchAcknowledged
        case "n": self = .endOfTransmission
        default: self = .other
        }
    }

    /// The control message in `bytes`; nil for a request and for what is no message. Control messages are short, so
    /// that long messages are not read for it.
    init?(short bytes: [UInt8]) {
        guard bytes.count <= 256, let parts = try? MessageParts(bytes), parts.layer == "c" else { return nil }
        self.init(parts.type)
    }
}

/// The members of a message, in whatever order they stand.
private struct MessageParts {
    var layer: String?
    /// Of a control message.
    var type: String?
    var number: Int64?
    var action: String?
    var body = MessageBody()

    init(_ bytes: [UInt8]) throws(JSONError) {
        let span = bytes.span
        var scanner = JSONScanner()
        var members = try scanner.beginObject(span)
        while let name = try scanner.nextMember(span, &members) {
            switch (name, try scanner.kind(span)) {
            case ("t", .string): layer = try scanner.string(span)
            case ("d", .object): try read(&scanner, bytes, span)
            default: _ = try PassedText.check(&scanner, span)
            }
        }
        try scanner.end(span)
    }

    private mutating func read(_ scanner: inout JSONScanner, _ bytes: [UInt8], _ span: Span<UInt8>) throws(JSONError) {
        var members = try scanner.beginObject(span)
        while let name = try scanner.nextMember(span, &members) {
            switch (name, try scanner.kind(span)) {
            case ("t", .string): type = try scanner.string(span)
            case ("a", .string): action = try scanner.string(span)
            case ("r", .number): number = RequestNumber.exact(try scanner.number(span))
            case ("b", .object): body = try MessageBody(&scanner, bytes, span)
            default: _ = try PassedText.check(&scanner, span)
            }
        }
    }
}

/// The body of a request: the checked texts of the members that an action may have.
struct MessageBody {
    private var pathText, data, queryText, tagText: ArraySlice<UInt8>?
    private(set) var hash, credential, authVariable, noAuth: ArraySlice<UInt8>?

    init() {}

    fileprivate init(_ scanner: inout JSONScanner, _ bytes: [UInt8], _ span: Span<UInt8>) throws(JSONError) {
        var members = try scanner.beginObject(span)
        while let name = try scanner.nextMember(span, &members) {
            let value = bytes[try PassedText.check(&scanner, span)]
            switch name {
            case "p": pathText = value
            case "d": data = value
            case "q": queryText = value
            case "t": tagText = value
            case "h": hash = value
            case "cred": credential = value
            case "authvar": authVariable = value
            case "noauth": noAuth = value
            default: break
            }
        }
    }

    /// The path of the node.
    var path: TreePath {
        get throws(ArgumentError) {
            guard let text = try text("p", pathText) else {
                throw ArgumentError(reason: "missing_path", "\"p\" is missing, e.g. \"p\":\"/chats/c1\"")
            }
            return try TreePath(text)
        }
    }

    /// The value to write. Without one nothing is written: null would delete.
    var value: ArraySlice<UInt8> {
        get throws(ArgumentError) {
            guard let data else {
                throw ArgumentError(reason: "missing_data", "\"d\" is missing, e.g. \"d\":null to remove the node")
            }
            return data
        }
    }

    /// The values to write, by path.
    var values: ArraySlice<UInt8> {
        get throws(ArgumentError) {
            let value = try value
            guard value.first == UInt8(ascii: "{") else {
                throw ArgumentError(
                    reason: "invalid_data",
                    "Invalid data; couldn't parse JSON object. Are you sending a JSON object with valid key names?")
            }
            return value
        }
    }

    /// The query; the default one when none is given.
    func query(_ limits: SessionLimits) throws(ArgumentError) -> WireQuery {
        guard let queryText, !queryText.equals("null") else { return .everything }
        guard queryText.count <= limits.queryBytesMax else {
            throw ArgumentError(reason: "invalid_query", "A query has at most \(limits.queryBytesMax) bytes")
        }
        guard let json = try? PassedText.value(queryText) else {
            throw ArgumentError(reason: "invalid_query", "A query must be an object, e.g. {\"i\":\"date\",\"l\":50}")
        }
        return try WireQuery(json)
    }

    /// The tag of a listen; nil when none is given.
    var tag: Int64? {
        get throws(ArgumentError) {
            guard let tagText, !tagText.equals("null") else { return nil }
            guard case .number(let number)? = try? PassedText.value(tagText), let tag = RequestNumber.exact(number)
            else { throw ArgumentError(reason: "invalid_tag", "A tag must be an integer, e.g. \"t\":1") }
            return tag
        }
    }

    /// A member that is a text; nil when it is absent or null.
    func text(_ name: String, _ member: ArraySlice<UInt8>?) throws(ArgumentError) -> String? {
        guard let member, !member.equals("null") else { return nil }
        guard case .string(let text)? = try? PassedText.value(member) else {
            throw ArgumentError(reason: "invalid_member", "\"\(name)\" must be a text")
        }
        return text
    }
}
