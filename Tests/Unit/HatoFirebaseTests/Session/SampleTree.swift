import HatoModel

/// A query as a client writes it, beside what it means.
struct SampleQuery: Hashable {
    /// The members of `q`.
    private let members: [String]
    let meaning: TreeQuery

    private init(_ members: [String], _ native: JSONValue) {
        self.members = members
        meaning = (try? TreeQuery(native)) ?? TreeQuery()
    }

    var isDefault: Bool { members.isEmpty }
    var text: String { "{\(members.joined(separator: ","))}" }
    /// The same query as another text.
    var reversed: String { "{\(members.reversed().joined(separator: ","))}" }
    /// Whether it needs an index.
    var isByChild: Bool { if case .child = meaning.order { true } else { false } }

    /// What a client that listens with this query sees of a node.
    func view(of node: TreeNode) -> TreeNode {
        isDefault ? node : .object(unsorted: meaning.select(from: node))
    }

    static let everything = SampleQuery([], [:])
    static let selecting = [
        SampleQuery([#""i":".key""#, #""l":2"#, #""vf":"r""#], ["orderBy": "$key", "limitToLast": 2]),
        SampleQuery([#""l":2"#, #""vf":"l""#, #""i":".key""#], ["orderBy": "$key", "limitToFirst": 2]),
        SampleQuery([#""i":"n""#, #""l":2"#, #""vf":"r""#], ["orderBy": "n", "limitToLast": 2]),
        SampleQuery(
            [#""i":"n""#, #""l":2"#, #""sp":20"#, #""sin":true"#],
            [
                "orderBy": "n", "startAt": 20, "limitToFirst": 2,
            ]),
        SampleQuery([#""l":2"#, #""vf":"r""#], ["orderBy": "$priority", "limitToLast": 2]),
        SampleQuery([#""i":".value""#, #""ep":50"#, #""ein":true"#], ["orderBy": "$value", "endAt": 50]),
        SampleQuery(
            [#""i":".key""#, #""sp":"b""#, #""sin":true"#, #""ep":"n""#],
            [
                "orderBy": "$key", "startAt": "b", "endAt": "n",
            ]),
    ]
}

extension TreeNode {
    /// A stand-in for the hash of a value: different for different values, and of the right form.
    var standInHash: String {
        guard !isEmpty else { return "" }
        var bytes: [UInt8] = []
        var state: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in export.encoded { state = (state ^ UInt64(byte)) &* 0x100_0000_01B3 }
        for _ in 0..<20 {
            state = (state ^ (state >> 29)) &* 0x100_0000_01B3
            bytes.append(UInt8(truncatingIfNeeded: state >> 32))
        }
        return Base64.standard.encode(bytes) + "="
    }
}

/// What the writes of a session do when it ends (spec realtime-database §8.7).
struct DeferredModel: Equatable {
    private(set) var nodes: [TreePath: TreeNode] = [:]

    mutating func set(_ node: TreeNode, at path: TreePath) {
        drop(path)
        if let cover = nodes.keys.first(where: { $0.isAtOrAbove(path) }), let rest = path.relative(to: cover) {
            nodes[cover] = nodes[cover]?.setting(node, at: rest)
        } else {
            nodes[path] = node
        }
    }

    /// An entry above the path stays for its other children.
    mutating func cancel(at path: TreePath) {
        for depth in 0..<path.depth {
            guard let children = nodes[path.prefix(depth)]?.children else { continue }
            nodes[path.prefix(depth)] = nil
            for child in children {
                if let place = try? path.prefix(depth).child(child.key) { nodes[place] = child.node }
            }
        }
        drop(path)
    }

    private mutating func drop(_ path: TreePath) { nodes = nodes.filter { !path.isAtOrAbove($0.key) } }
}

extension SeededInputs {
    private static let keys = ["a", "b", "n", "q\""]

    /// A path of so many keys.
    mutating func path(_ depths: ClosedRange<Int>) -> TreePath {
        let depth = depths.lowerBound + below(depths.count)
        let keys = (0..<depth).map { _ in one(of: Self.keys) }
        return (try? TreePath(keys.joined(separator: "/"))) ?? .root
    }

    /// A node or a priority to write at.
    mutating func place() -> TreePath {
        let path = path(once(in: 30) ? 0...0 : 1...3)
        return once(in: 8) && !path.isRoot ? (try? TreePath(path.text + "/.priority")) ?? path : path
    }

    /// What is written at a path.
    mutating func value(at path: TreePath) -> JSONValue { path.isPriority ? priority() : value(depth: 3 - path.depth) }

    private mutating func priority() -> JSONValue {
        one(of: [.null, .number(Double(below(9))), .string("p"), .string("\"}")])
    }

    private mutating func value(depth: Int) -> JSONValue {
        if depth > 0, !once(in: 3) {
            var object = JSONObject()
            for _ in 0..<1 + below(3) { object[one(of: Self.keys)] = value(depth: depth - 1) }
            if once(in: 4) { object[".priority"] = priority() }
            return .object(object)
        }
        let leaf: JSONValue =
            switch below(8) {
            case 0: .null
            case 1: .bool(once(in: 2))
            case 2: .string(one(of: ["", "a", "}]\"{\\", "あ\n", "\u{2028}"]))
            default: .number(Double(below(100)))
            }
        return once(in: 5) && !leaf.isNull ? [".value": leaf, ".priority": priority()] : leaf
    }

    /// The members of an update: paths below it, none above another, and what is written there.
    mutating func update(at path: TreePath) -> [(name: String, value: JSONValue)] {
        var members: [(place: TreePath, value: JSONValue)] = []
        for _ in 0..<1 + below(3) {
            let place = place()
            let isApart = members.allSatisfy { !$0.place.isAtOrAbove(place) && !place.isAtOrAbove($0.place) }
            if isApart, place.depth + path.depth <= 4, !place.isRoot { members.append((place, value(at: place))) }
        }
        return members.map { (String($0.place.text.dropFirst()), $0.value) }
    }
}
