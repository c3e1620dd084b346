/// The JSON form of a query (protocol §5); errors have Firebase's own messages (spec §4.5).
extension TreeQuery {
    /// Reads a query; throws `ArgumentError` with the problem and a valid example.
    public init(_ json: JSONValue) throws(ArgumentError) {
        guard case .object(let object) = json else {
            throw Self.error(
                "invalid_query", example: #"{"orderBy": "date", "limitToLast": 50}"#, "A query must be an object")
        }
        let parameters = try Parameters(object)
        guard let orderBy = parameters.orderBy else {
            guard parameters.isEmpty else {
                throw Self.error(
                    "orderBy must be defined when other query parameters are defined",
                    example: #"{"orderBy": "$key", "limitToLast": 50}"#)
            }
            self.init()
            return
        }
        self.init(order: try Order(orderBy))
        try readBounds(parameters)
        limit = try Self.limit(parameters)
    }

    /// The members of a query. A null is an absent one, except that null is a legal bound; `nil` of
    /// `JSONValue` is null, so absent ones are compared with `.none`.
    private struct Parameters {
        var orderBy, limitToFirst, limitToLast: JSONValue?
        var startAt, startAfter, endAt, endBefore, equalTo: JSONValue?

        var isEmpty: Bool {
            orderBy == .none && limitToFirst == .none && limitToLast == .none && !hasRange && equalTo == .none
        }

        var hasRange: Bool { startAt != .none || startAfter != .none || endAt != .none || endBefore != .none }

        init(_ object: JSONObject) throws(ArgumentError) {
            for member in object.members {
                let value = member.value
                let present = value.isNull ? Optional<JSONValue>.none : value
                switch member.name {
                case "orderBy": orderBy = present
                case "limitToFirst": limitToFirst = present
                case "limitToLast": limitToLast = present
                case "startAt": startAt = value
                case "startAfter": startAfter = value
                case "endAt": endAt = value
                case "endBefore": endBefore = value
                case "equalTo": equalTo = value
                default:
                    throw TreeQuery.error(
                        "unknown_query_parameter", example: #"{"orderBy": "date", "limitToLast": 50}"#,
                        "A query has no parameter \"\(member.name)\"")
                }
            }
        }
    }

    private static func error(_ reason: String, example: String, _ message: String? = nil) -> ArgumentError {
        ArgumentError(reason: reason, "\(message ?? reason), e.g. \(example)")
    }

    private mutating func readBounds(_ given: Parameters) throws(ArgumentError) {
        if let equal = given.equalTo {
            guard !given.hasRange else {
                throw Self.error(
                    "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore",
                    example: #"{"orderBy": "date", "equalTo": 5}"#)
            }
            let bound = try Bound(equal, "equalTo", order)
            start = bound.cutBefore
            end = bound.cutAfter
            return
        }
        guard given.startAt == .none || given.startAfter == .none else {
            throw Self.error(
                "Only one of startAt and startAfter may be specified", example: #"{"orderBy": "date", "startAfter": 5}"#
            )
        }
        guard given.endAt == .none || given.endBefore == .none else {
            throw Self.error(
                "Only one of endAt and endBefore may be specified", example: #"{"orderBy": "date", "endBefore": 5}"#)
        }
        if let value = given.startAt { start = try Bound(value, "startAt", order).cutBefore }
        if let value = given.startAfter { start = try Bound(value, "startAfter", order).cutAfter }
        if let value = given.endAt { end = try Bound(value, "endAt", order).cutAfter }
        if let value = given.endBefore { end = try Bound(value, "endBefore", order).cutBefore }
    }

    private static func limit(_ given: Parameters) throws(ArgumentError) -> Limit? {
        let first = try given.limitToFirst.map { json throws(ArgumentError) in try count(json, "limitToFirst") }
        let last = try given.limitToLast.map { json throws(ArgumentError) in try count(json, "limitToLast") }
        switch (first, last) {
        case (nil, nil): return nil
        case (let count?, nil): return .first(count)
        case (nil, let count?): return .last(count)
        case (_?, _?):
            throw error(
                "Only one of limitToFirst and limitToLast may be specified",
                example: #"{"orderBy": "date", "limitToLast": 50}"#)
        }
    }

    private static func count(_ value: JSONValue, _ name: String) throws(ArgumentError) -> Int {
        func wrong(_ problem: String) -> ArgumentError {
            error("\(name) must be \(problem)", example: #"{"orderBy": "date", "\#(name)": 50}"#)
        }
        guard let number = value.number, number == number.rounded() else { throw wrong("an integer") }
        guard number > 0 else { throw wrong("positive") }
        guard number <= Double(TreeLimits.queryLimitMax) else { throw wrong("at most \(TreeLimits.queryLimitMax)") }
        return Int(number)
    }

    /// A bound in JSON: a value, perhaps with the key that settles ties.
    private struct Bound {
        var value: SortValue
        var key: String?

        init(_ json: JSONValue, _ name: String, _ order: Order) throws(ArgumentError) {
            var primitive = json
            if case .object(let object) = json {
                guard let value = object["value"], object.members.allSatisfy({ $0.name == "value" || $0.name == "key" })
                else {
                    throw TreeQuery.error(
                        "Constraint index field must be a JSON primitive",
                        example: #"{"orderBy": "date", "\#(name)": {"value": 5, "key": "k"}}"#)
                }
                primitive = value
                if let key = object["key"], !key.isNull {
                    guard let text = key.string else {
                        throw TreeQuery.error(
                            "Constraint key must be a string",
                            example: #"{"orderBy": "date", "\#(name)": {"value": 5, "key": "k"}}"#)
                    }
                    self.key = text
                }
            }
            guard let sortValue = SortValue(primitive: primitive) else {
                throw TreeQuery.error(
                    "Constraint index field must be a JSON primitive", example: #"{"orderBy": "date", "\#(name)": 5}"#)
            }
            value = sortValue
            try check(name, order)
        }

        private mutating func check(_ name: String, _ order: Order) throws(ArgumentError) {
            switch (order, value) {
            case (.key, .leaf(.string(let text))):
                guard key == nil else {
                    throw TreeQuery.error(
                        "A second key is not allowed when ordering by key",
                        example: #"{"orderBy": "$key", "\#(name)": "k"}"#)
                }
                (value, key) = (.null, text)
            case (.key, _):
                throw TreeQuery.error(
                    "Provided key index type is invalid, must be string",
                    example: #"{"orderBy": "$key", "\#(name)": "k"}"#)
            case (.priority, .leaf(.bool)):
                throw TreeQuery.error(
                    "A bound must be a valid priority value (null, a number, or a string)",
                    example: #"{"orderBy": "$priority", "\#(name)": 5}"#)
            default:
                break
            }
        }

        var cutBefore: Cut { Cut(value, key.map(KeyCut.below) ?? .beforeAll) }
        var cutAfter: Cut { Cut(value, key.map(KeyCut.above) ?? .afterAll) }
    }
}

extension TreeQuery.Order {
    /// Reads `orderBy`: `$key`, `$value`, `$priority` or a child path.
    init(_ json: JSONValue) throws(ArgumentError) {
        guard let text = json.string else { throw Self.wrong }
        switch text {
        case "$key": self = .key
        case "$value": self = .value
        case "$priority": self = .priority
        default:
            guard let path = try? TreePath(text), !path.isPriority, !path.isRoot else { throw Self.wrong }
            self = .child(path)
        }
    }

    private static let wrong = ArgumentError(
        reason: "orderBy must be a valid JSON encoded path",
        #"orderBy must be a valid JSON encoded path, e.g. "date", "author/name", "$key", "$value" or "$priority""#)

    /// As written in `orderBy`.
    public var text: String {
        switch self {
        case .key: "$key"
        case .value: "$value"
        case .priority: "$priority"
        case .child(let path): path.depth == 1 ? path.lastKey?.text ?? "" : String(path.text.dropFirst())
        }
    }
}

extension SortValue {
    /// Nil for objects and arrays.
    public init?(primitive json: JSONValue) {
        switch json {
        case .null: self = .null
        case .bool(let value): self = .leaf(.bool(value))
        case .number(let value): self = .leaf(.number(value == 0 ? 0 : value))
        case .string(let value): self = .leaf(.string(value))
        case .array, .object: return nil
        }
    }

    /// Objects, of which only the order is known, and missing values are null.
    var json: JSONValue { if case .leaf(let leaf) = self { leaf.json } else { .null } }
}

extension TreeQuery {
    /// The JSON form of the query, the same for equal queries.
    public var json: JSONValue {
        var object = JSONObject()
        forEachMember { object.append($0, $1) }
        return .object(object)
    }

    public func write(into writer: inout JSONWriter) {
        writer.beginObject()
        forEachMember { name, value in
            writer.member(name)
            writer.write(value)
        }
        writer.endObject()
    }

    /// Calls `body` with the name and the value of each member of the JSON form.
    private func forEachMember(_ body: (String, JSONValue) -> Void) {
        if isDefault { return }
        body("orderBy", .string(order.text))
        if let start, let end, let equal = equal(start, end) {
            body("equalTo", equal)
        } else {
            if let start { body(start.key.isAfter ? "startAfter" : "startAt", written(start)) }
            if let end { body(end.key.isAfter ? "endAt" : "endBefore", written(end)) }
        }
        switch limit {
        case .first(let count): body("limitToFirst", .number(Double(count)))
        case .last(let count): body("limitToLast", .number(Double(count)))
        case nil: break
        }
    }

    /// The value of `equalTo`, when it expresses the same range.
    private func equal(_ start: Cut, _ end: Cut) -> JSONValue? {
        guard start.value == end.value else { return nil }
        switch (start.key, end.key) {
        // By key, these two cuts express no value; and JSON's own null is not nil.
        case (.beforeAll, .afterAll) where order != .key: return written(start)
        case (.before(let low), .after(let high)) where low == high: return written(start)
        default: return .none
        }
    }

    private func written(_ cut: Cut) -> JSONValue {
        if order == .key { return .string(cut.key.name) }
        let primitive = cut.value.json
        return switch cut.key {
        case .before(let key), .after(let key): ["value": primitive, "key": .string(key.text)]
        case .beforeAll, .afterAll: primitive
        }
    }
}

extension TreeQuery.KeyCut {
    fileprivate var isAfter: Bool {
        switch self {
        case .beforeAll, .before: false
        case .after, .afterAll: true
        }
    }

    fileprivate var name: String {
        switch self {
        case .beforeAll: KeyOrder.minName
        case .before(let key), .after(let key): key.text
        case .afterAll: KeyOrder.maxName
        }
    }
}

extension TreeQuery: FieldValue {
    public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
        do { try self.init(json) } catch { throw FieldError(error) }
    }
}
