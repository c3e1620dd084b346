/// The parameters of a REST request, decoded as a form (spec realtime-database §7.2). Unknown names have no meaning.
struct QueryParameters {
    private static let names: Set<String> = [
        "auth", "access_token", "auth_variable_override", "ns",
        "shallow", "print", "callback", "format", "download", "timeout", "writeSizeLimit", "dryRun",
        "x-http-method-override",
        "orderBy", "startAt", "startAfter", "endAt", "endBefore", "equalTo", "limitToFirst", "limitToLast",
    ]
    /// Those that select children, in the order in which they are checked.
    static let queryNames = [
        "orderBy", "startAt", "startAfter", "endAt", "endBefore", "equalTo", "limitToFirst", "limitToLast",
    ]

    private var values: [String: String] = [:]

    /// Throws for a value that is no percent-encoded UTF-8, and for two different values of one name.
    init(_ query: Substring?) throws(RESTError) {
        let query = query ?? ""
        let bytes = query.utf8.span
        var start = 0
        while start < bytes.count {
            var (mark, end): (Int?, Int) = (nil, start)
            while end < bytes.count, bytes[end] != UInt8(ascii: "&") {
                if mark == nil, bytes[end] == UInt8(ascii: "=") { mark = end }
                end += 1
            }
            try take(bytes.extracting(start..<(mark ?? end)), bytes.extracting((mark.map { $0 + 1 } ?? end)..<end))
            start = end + 1
        }
    }

    private mutating func take(_ name: Span<UInt8>, _ value: Span<UInt8>) throws(RESTError) {
        guard let name = PercentDecoding.decode(name, isForm: true), Self.names.contains(name) else { return }
        guard let value = PercentDecoding.decode(value, isForm: true) else {
            throw RESTErrors.parameter(name, "percent-encoded UTF-8")
        }
        if let other = values.updateValue(value, forKey: name), !other.utf8.elementsEqual(value.utf8) {
            throw RESTErrors.parameter(name, "specified only once")
        }
    }

    /// The value of a parameter; nil when it is absent.
    subscript(name: String) -> String? { values[name] }

    /// Whether a parameter selects children.
    var hasQuery: Bool { Self.queryNames.contains { values[$0] != nil } }

    /// Whether those that select children are of a page of keys: the command line of Firebase sends `limitToFirst` and
    /// `startAfter`, without an order, beside `shallow` when it removes a large node piece by piece.
    var isKeyPage: Bool {
        values["limitToFirst"] != nil
            && Self.queryNames.allSatisfy { values[$0] == nil || $0 == "limitToFirst" || $0 == "startAfter" }
    }

    /// The value of a parameter; nil when it is absent or empty.
    func nonEmpty(_ name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

    /// `true` or `false`; false when absent. Throws for another value.
    func flag(_ name: String) throws(RESTError) -> Bool {
        switch values[name] {
        case nil, "false": return false
        case "true": return true
        default: throw RESTErrors.parameter(name, "true or false")
        }
    }
}
