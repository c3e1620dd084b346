/// The member names of one object: searched linearly while they are few, hashed when they are many.
struct JSONNameSet: Sendable {
    private static let linearMax = 16
    private var few: [String] = []
    private var many: Set<JSONName> = []

    /// Returns false when the name was present.
    mutating func insert(_ name: String) -> Bool {
        if many.isEmpty {
            for index in few.indices where few[index].hasSameBytes(as: name) { return false }
            // A request has four members; growing to four step by step would take three allocations.
            if few.isEmpty { few.reserveCapacity(4) }
            few.append(name)
            if few.count > Self.linearMax { many = Set(few.map(JSONName.init)) }
            return true
        }
        return many.insert(JSONName(name)).inserted
    }

    /// The same where `members` holds all names inserted before, so that small objects need no list of their own.
    @inline(__always)
    mutating func insert(_ name: String, among members: [JSONObject.Member]) -> Bool {
        if members.count <= Self.linearMax {
            for index in members.indices where members[index].name.hasSameBytes(as: name) { return false }
            return true
        }
        if many.isEmpty { many = Set(members.map { JSONName($0.name) }) }
        return many.insert(JSONName(name)).inserted
    }
}

/// A member name with equality by bytes.
struct JSONName: Hashable, Sendable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (left: JSONName, right: JSONName) -> Bool { left.text.hasSameBytes(as: right.text) }

    func hash(into hasher: inout Hasher) {
        // Eight bytes at a time: the hasher costs the same for one byte as for eight.
        let bytes = text.utf8Span.span
        var index = 0
        while index &+ 8 <= bytes.count {
            hasher.combine(littleEndianWord(bytes, at: index))
            index &+= 8
        }
        var rest = UInt64(bytes.count)
        while index < bytes.count {
            rest = rest << 8 | UInt64(bytes[index])
            index &+= 1
        }
        hasher.combine(rest)
    }
}
