/// The static types of expressions (spec §9.6).
enum RulesType: Hashable {
    case boolean
    case number
    case string
    case null
    case regex
    case array
    case snapshot
    /// `data.exists` or `'a'.contains` before it is called.
    case method
    /// The result of `val()` and `getPriority()`.
    case value
    /// `auth` and every member of it.
    case auth
    case query
    /// A member of `query` that is no boolean.
    case queryValue
    /// The type of a `?:` whose branches have different types.
    case mixed
    /// The type of an expression with a reported problem; it fits everywhere, so that one mistake is reported once.
    case wrong

    var fitsEquality: Bool {
        switch self {
        case .boolean, .number, .string, .null, .value, .auth, .queryValue, .mixed, .wrong: true
        case .regex, .array, .snapshot, .method, .query: false
        }
    }

    var fitsOrder: Bool { self == .string || fitsArithmetic }

    var fitsArithmetic: Bool {
        switch self {
        case .number, .value, .auth, .queryValue, .mixed, .wrong: true
        default: false
        }
    }

    var fitsStringArgument: Bool {
        switch self {
        case .string, .value, .auth, .mixed, .wrong: true
        default: false
        }
    }

    var fitsCondition: Bool { self == .boolean || self == .wrong }
}

/// The methods of snapshots (spec §9.4).
enum RulesSnapshotMethod: String {
    case val, child, parent, hasChild, hasChildren, exists, getPriority, isNumber, isString, isBoolean

    var result: RulesType {
        switch self {
        case .val, .getPriority: .value
        case .child, .parent: .snapshot
        case .hasChild, .hasChildren, .exists, .isNumber, .isString, .isBoolean: .boolean
        }
    }
}

/// The methods of strings (spec §9.4).
enum RulesStringMethod: String {
    case contains, beginsWith, endsWith, replace, toLowerCase, toUpperCase, matches

    var result: RulesType {
        switch self {
        case .contains, .beginsWith, .endsWith, .matches: .boolean
        case .replace, .toLowerCase, .toUpperCase: .string
        }
    }
}

/// The members of `query` (spec §9.3).
enum RulesQueryField: String {
    case orderByKey, orderByValue, orderByPriority, orderByChild, startAt, endAt, equalTo, limitToFirst, limitToLast

    var type: RulesType {
        switch self {
        case .orderByKey, .orderByValue, .orderByPriority: .boolean
        default: .queryValue
        }
    }
}
