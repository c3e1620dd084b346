import HatoModel
import HatoTesting
import HatoTree

extension SeededRandom {
    mutating func chance(_ one: Int, in all: Int) -> Bool { Int.random(in: 0..<all, using: &self) < one }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &self)]
    }
}

/// Writes, places and queries of a small tree in which everything collides.
struct RandomWrites {
    var random: SeededRandom

    private static let keys = ["a", "b", "m1", "m2", "10", "9", "鳩", "date"]

    mutating func path() throws -> TreePath {
        if random.chance(1, in: 60) { return .root }
        var text = "/c"
        if random.chance(1, in: 40) { return try TreePath(text) }
        text += random.pick(["/a", "/b"])
        if random.chance(1, in: 14) { return try TreePath(text) }
        text += "/" + random.pick(Self.keys)
        if random.chance(1, in: 2) { text += "/" + random.pick(["date", "author", "author/name", "text"]) }
        if random.chance(1, in: 10) { text += "/" + random.pick(Self.keys) + "/" + random.pick(Self.keys) }
        return try TreePath(text)
    }

    mutating func primitive() -> JSONValue {
        switch Int.random(in: 0..<6, using: &random) {
        case 0: .bool(random.chance(1, in: 2))
        case 1: .string(random.pick(["ただいま", "おかえり", ""]))
        default: .number(Double(Int.random(in: 0...9, using: &random)))
        }
    }

    mutating func priority() -> JSONValue { random.pick([.null, 1, 2, "p"]) }

    mutating func message() -> JSONValue {
        if random.chance(1, in: 8) { return primitive() }
        var message: JSONObject = ["text": .string(random.pick(["ただいま", "おかえり", ""]))]
        if random.chance(4, in: 5) { message["date"] = .number(Double(Int.random(in: 0...9, using: &random))) }
        if random.chance(1, in: 2) { message["author"] = ["name": .string(random.pick(["マスオ", "カツオ", "🕊"]))] }
        if random.chance(1, in: 6) { message[".priority"] = priority() }
        return .object(message)
    }

    mutating func write(_ version: UInt64) throws -> Mutation {
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<5:
            let key = PushKey(milliseconds: Int64(version), random: (random.next(), version))
            return .push(message(), at: try TreePath(random.pick(["/c/a", "/c/b"])), key: key)
        case 5..<10: return .set(message(), at: try path())
        case 10..<13: return .remove(at: try path())
        case 13: return .setPriority(priority(), at: try path().node)
        case 14, 15:
            return .set(random.pick([true, .null]), at: try TreePath("/members/" + random.pick(["masuo", "sazae"])))
        case 16: return .set(.bool(random.chance(1, in: 2)), at: "/open")
        default: return try update()
        }
    }

    private mutating func update() throws -> Mutation {
        var values: JSONObject = [:]
        for name in ["a/m1/date", "a/m2", "a/10/author/name", "b/m1", "b/10/text", "b/9/.priority"]
        where random.chance(1, in: 2) {
            values[name] = name.hasSuffix("priority") ? priority() : random.chance(1, in: 3) ? .null : message()
        }
        return .update(values, at: "/c")
    }

    mutating func query() throws -> TreeQuery {
        let order = random.pick(["date", "date", "author/name", "$key", "$value", "$priority"])
        var json: JSONObject = ["orderBy": .string(order)]
        switch order {
        case "date", "$value", "$priority":
            if random.chance(1, in: 3) {
                json[random.pick(["startAt", "startAfter"])] = .number(Double(Int.random(in: 0...5, using: &random)))
            }
            if random.chance(1, in: 3) {
                json[random.pick(["endAt", "endBefore"])] = .number(Double(Int.random(in: 4...9, using: &random)))
            }
        case "author/name":
            if random.chance(1, in: 2) { json["equalTo"] = .string(random.pick(["マスオ", "🕊"])) }
        default:
            if random.chance(1, in: 2) { json["startAt"] = .string(random.pick(["", "10", "m1", "🕊"])) }
        }
        switch Int.random(in: 0..<4, using: &random) {
        case 0: break
        case 1: json["limitToFirst"] = .number(Double(Int.random(in: 1...4, using: &random)))
        default: json["limitToLast"] = .number(Double(Int.random(in: 1...4, using: &random)))
        }
        return try TreeQuery(.object(json))
    }
}

extension TreeNode {
    /// The tree after a write, by the simplest means.
    func after(_ mutation: Mutation) throws -> TreeNode {
        switch mutation.operation {
        case .set(let value):
            return setting(try TreeNode(json: value, at: mutation.path.node), at: mutation.path)
        case .push(let value, let key, _):
            return setting(try TreeNode(json: value), at: try mutation.path.child(TreeKey(key)))
        case .update(let values):
            // An update is one step: a parent that it empties and fills again never vanished, and keeps its priority.
            let places = try values.members.map { member in
                let path = try mutation.path.appending(TreePath(member.name))
                return (path: path, node: try TreeNode(json: member.value, at: path.node))
            }
            let nodes = places.filter { !$0.path.isPriority }
            let ordered =
                nodes.filter { !$0.node.isEmpty } + nodes.filter(\.node.isEmpty) + places.filter(\.path.isPriority)
            return ordered.reduce(self) { $0.setting($1.node, at: $1.path) }
        }
    }
}
