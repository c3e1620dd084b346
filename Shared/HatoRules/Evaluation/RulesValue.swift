import HatoModel

/// The value of an expression.
enum RulesValue: Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    /// An object or array inside of `auth`: it can be compared with null, and its members can be read.
    case object(JSONValue)
    /// `auth` itself, when a user is signed in.
    case auth
    /// `val()` of a node that has children (spec §9.4): unequal to everything but another such value, and an error in
    /// every other use.
    case children

    init(_ json: JSONValue?) {
        switch json {
        case nil, .null?: self = .null
        case .bool(let value)?: self = .bool(value)
        case .number(let value)?: self = .number(value)
        case .string(let value)?: self = .string(value)
        case .array?, .object?: self = json.map { .object($0) } ?? .null
        }
    }

    init(_ leaf: TreeLeaf?) {
        switch leaf {
        case nil: self = .null
        case .bool(let value)?: self = .bool(value)
        case .number(let value)?: self = .number(value)
        case .string(let value)?: self = .string(value)
        }
    }

    /// `==` of the language: strict, without conversion.
    func equals(_ other: RulesValue) -> Bool {
        switch (self, other) {
        case (.null, .null), (.auth, .auth), (.children, .children): true
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left.hasSameBytes(as: right)
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }

    /// A member of an object inside of `auth`; null where there is none.
    func member(_ name: RulesValue, of auth: RulesAuth) -> RulesValue {
        switch (self, name) {
        case (.auth, .string(let name)): auth.member(name)
        case (.object(.object(let object)), .string(let name)): RulesValue(object[name])
        case (.object(.array(let elements)), .number(let number)): Self.element(Int(exactly: number), of: elements)
        case (.object(.array(let elements)), .string(let name)): Self.element(Int(name), of: elements)
        default: .null
        }
    }

    private static func element(_ index: Int?, of elements: [JSONValue]) -> RulesValue {
        guard let index, elements.indices.contains(index) else { return .null }
        return RulesValue(elements[index])
    }

    /// The text of a value as an operand of a concatenation; nil for values without one.
    var text: String? {
        switch self {
        case .string(let text): text
        case .number(let number): RulesText.text(of: number)
        case .null, .bool, .object, .auth, .children: nil
        }
    }
}
