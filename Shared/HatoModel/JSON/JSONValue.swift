/// One JSON value (RFC 8259): numbers are IEEE doubles, objects keep the order of their members.
///
/// Equality of objects ignores the order of members; equality of numbers is that of doubles; equality of strings and
/// names is that of their characters, without Swift's Unicode normalisation (two keys of the tree that differ only in
/// how an accent is composed are two keys).
public enum JSONValue: Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)
}

/// The members of a JSON object, in the order they were written; names are unique.
///
/// Look-up is linear: objects of requests are small, and large objects (a node of the tree) are iterated, not searched.
public struct JSONObject: Sendable {
    /// A name and its value.
    public struct Member: Sendable {
        /// The name, as written.
        public var name: String
        /// The value.
        public var value: JSONValue

        public init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    /// The members in the order they were written.
    public private(set) var members: [Member]

    public init() { members = [] }

    /// Takes members whose names are known to be unique (verified by the parser, or from a sorted source).
    public init(uniqueMembers: [Member]) { members = uniqueMembers }

    /// Whether there is no member.
    public var isEmpty: Bool { members.isEmpty }
    /// How many members there are.
    public var count: Int { members.count }

    /// The value of the member `name`; setting nil removes it, setting another adds it at the end or replaces it in
    /// place.
    public subscript(name: String) -> JSONValue? {
        get {
            for member in members where member.name.hasSameBytes(as: name) { return member.value }
            return nil
        }
        set {
            let index = members.firstIndex { $0.name.hasSameBytes(as: name) }
            switch (index, newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append(Member(name, value))
            case (nil, nil): break
            }
        }
    }

    /// Adds a member whose name is known to be new.
    public mutating func append(_ name: String, _ value: JSONValue) {
        members.append(Member(name, value))
    }
}

extension JSONValue: Hashable {
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left.hasSameBytes(as: right)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let bool): hasher.combine(bool)
        case .number(let number): hasher.combine(number)
        case .string(let string): hasher.combine(JSONName(string))
        case .array(let elements): hasher.combine(elements)
        case .object(let object): hasher.combine(object)
        }
    }
}

extension JSONObject.Member: Hashable {
    public static func == (left: Self, right: Self) -> Bool {
        left.name.hasSameBytes(as: right.name) && left.value == right.value
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(JSONName(name))
        hasher.combine(value)
    }
}

extension JSONObject: Hashable {
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        guard left.count == right.count else { return false }
        // The values are compared once: twice at each level would double the work of every level below it.
        let isInOneOrder = zip(left.members, right.members).allSatisfy { $0.name.hasSameBytes(as: $1.name) }
        return isInOneOrder ? left.members == right.members : left.sortedByName == right.sortedByName
    }

    public func hash(into hasher: inout Hasher) {
        // A sum, so that the order of members does not matter.
        var sum = 0
        for member in members { sum &+= member.hashValue }
        hasher.combine(sum)
    }

    private var sortedByName: [Member] {
        members.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self.init()
        for (name, value) in elements { self[name] = value }
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(nilLiteral: ()) { self = .null }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int) { self = .number(Double(value)) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(stringLiteral value: String) { self = .string(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        var object = JSONObject()
        for (name, value) in elements { object[name] = value }
        self = .object(object)
    }
}

extension JSONValue {
    /// The text, when it is a string.
    public var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The number, when it is a number.
    public var number: Double? { if case .number(let value) = self { value } else { nil } }
    /// The number, when it is integral and below 2^53: only then the double certainly equals the written number.
    public var integer: Int64? { number?.exactInteger }
    /// The value, when it is a boolean.
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The elements, when it is an array.
    public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    /// The members, when it is an object.
    public var object: JSONObject? { if case .object(let value) = self { value } else { nil } }
    /// Whether it is null.
    public var isNull: Bool { if case .null = self { true } else { false } }

    /// This value as a JSON text.
    public var encoded: [UInt8] {
        var writer = JSONWriter()
        writer.write(self)
        return writer.bytes
    }

    /// The member `name`, or nil when this is no object or has no such member.
    public subscript(name: String) -> JSONValue? { object?[name] }
}

extension Double {
    /// This number as an integer, when it is integral and below 2^53.
    var exactInteger: Int64? {
        guard magnitude < 0x1p53 else { return nil }
        let integer = Int64(self)
        return Double(integer) == self ? integer : nil
    }
}
