public import HatoModel

/// The value of `query` in rules (spec §9.3).
public struct RulesQuery: Sendable, Hashable {
    /// Whether `orderBy` is `$key`.
    public var orderByKey = false
    /// Whether `orderBy` is `$value`.
    public var orderByValue = false
    /// Whether `orderBy` is `$priority`.
    public var orderByPriority = false
    /// The path below each child, as it was written in the query.
    public var orderByChild: String?
    /// The first value; nil: none is given.
    public var startAt: TreeLeaf?
    /// The last value; nil: none is given.
    public var endAt: TreeLeaf?
    /// The only value; nil: none is given.
    public var equalTo: TreeLeaf?
    /// The maximum number of children, from the first; nil: none is given.
    public var limitToFirst: Int?
    /// The maximum number of children, from the last; nil: none is given.
    public var limitToLast: Int?

    /// A read without a query.
    public init() {}

    /// Exclusive bounds are represented like inclusive ones; a range of one value is `equalTo`.
    public init(_ query: TreeQuery) {
        switch query.order {
        case .child(let path): orderByChild = path.keys.map(\.text).joined(separator: "/")
        case .key: orderByKey = true
        case .value: orderByValue = true
        case .priority: orderByPriority = true
        }
        startAt = query.start.flatMap { Self.bound($0, query.order) }
        endAt = query.end.flatMap { Self.bound($0, query.order) }
        if let start = query.start, let end = query.end, startAt != nil, startAt == endAt,
            Self.isLower(start, query.order), Self.isUpper(end, query.order)
        {
            equalTo = startAt
            startAt = nil
            endAt = nil
        }
        switch query.limit {
        case .first(let count)?: limitToFirst = count
        case .last(let count)?: limitToLast = count
        case nil: break
        }
    }

    private static func bound(_ cut: TreeQuery.Cut, _ order: TreeQuery.Order) -> TreeLeaf? {
        if order == .key {
            switch cut.key {
            case .before(let key), .after(let key): return .string(key.text)
            case .beforeAll, .afterAll: return nil
            }
        }
        if case .leaf(let leaf) = cut.value { return leaf }
        return nil
    }

    private static func isLower(_ cut: TreeQuery.Cut, _ order: TreeQuery.Order) -> Bool {
        switch cut.key {
        case .before: true
        case .beforeAll: order != .key
        case .after, .afterAll: false
        }
    }

    private static func isUpper(_ cut: TreeQuery.Cut, _ order: TreeQuery.Order) -> Bool {
        switch cut.key {
        case .after: true
        case .afterAll: order != .key
        case .before, .beforeAll: false
        }
    }

    func value(_ field: RulesQueryField) -> RulesValue {
        switch field {
        case .orderByKey: .bool(orderByKey)
        case .orderByValue: .bool(orderByValue)
        case .orderByPriority: .bool(orderByPriority)
        case .orderByChild: orderByChild.map { .string($0) } ?? .null
        case .startAt: RulesValue(startAt)
        case .endAt: RulesValue(endAt)
        case .equalTo: RulesValue(equalTo)
        case .limitToFirst: limitToFirst.map { .number(Double($0)) } ?? .null
        case .limitToLast: limitToLast.map { .number(Double($0)) } ?? .null
        }
    }
}
