import HatoModel

/// What an effect does: how it writes to the tree, or that it calls a URL.
enum EffectKind: String, FieldChoice {
    case push, set, update, webhook
}

/// The write of an effect, read and found right.
struct EffectTemplate: Sendable {
    let kind: EffectKind
    let write: Notifier.EffectWrite
    private let path: PlaceText

    /// Throws `RPCError` that names the parameter of `notifier.categories.set`.
    ///
    /// - Parameters:
    ///   - parameter: where the effect stands.
    ///   - hasText: whether its action takes a text.
    init(_ effect: Notifier.ActionEffect, at parameter: String, hasText: Bool) throws(RPCError) {
        let given: [(EffectKind, Notifier.EffectWrite?)] = [
            (.push, effect.push), (.set, effect.set), (.update, effect.update),
        ]
        let present = given.filter { $0.1 != nil }
        guard present.count == 1, effect.webhook == nil, effect.needsKeys, let first = present.first,
            let write = first.1
        else { throw .notOneEffect(parameter) }
        (kind, self.write) = (first.0, write)
        let place = "\(parameter).\(first.0.rawValue)"
        if let database = write.database {
            do { _ = try DatabaseName(database) } catch { throw .wrong("\(place).database", error) }
        }
        do { path = try EffectCheck.path(write.path) } catch { throw .wrong("\(place).path", error) }
        do {
            let whole = try path.filledPath(with: EffectCheck.fills(for: path))
            // The key of the child comes below it.
            if first.0 == .push { _ = try whole.child(TreeKey("x")) }
            try EffectCheck(hasText: hasText, path: whole).value(write.value, of: first.0)
        } catch let error as ArgumentError {
            throw .wrong("\(place).value", error)
        } catch {
            throw .internalError
        }
    }

    /// Refuses what could never be written, whatever fills it. Not asked of effects that were accepted before: their
    /// responses say that they are refused. Throws `RPCError` that names the parameter.
    func requireSense(at parameter: String) throws(RPCError) {
        do throws(ArgumentError) {
            switch kind {
            case .push where write.value == .null:
                throw ArgumentError(
                    reason: "invalid_value", "A push of null writes nothing; give a value, or take set to remove")
            case .update: try EffectConflicts.refuse(write.value.object?.members.map(\.name) ?? [])
            case .push, .set, .webhook: break
            }
        } catch { throw .wrong("\(parameter).\(kind.rawValue).value", error) }
    }

    /// All places of path and value.
    private var places: [PlaceText.Place] {
        let values = EffectTemplate.texts(of: write.value, kind).flatMap { (try? PlaceText($0))?.places ?? [] }
        return path.places + values
    }

    /// What a response fills, as far as it is known when it comes; the name of the user is not.
    func fills(_ known: (PlaceText.Place) -> String?) -> [String: String] {
        var fills: [String: String] = [:]
        for place in places { fills[place.name] = known(place) }
        return fills
    }

    /// Throws `invalid_path` when what fills it is no key.
    func filledPath(with fills: [String: String]) throws(ArgumentError) -> TreePath {
        try path.filledPath(with: fills)
    }

    private static func texts(of value: JSONValue, _ kind: EffectKind) -> [String] {
        switch value {
        case .null, .bool, .number: return []
        case .string(let text): return [text]
        case .array(let values): return values.flatMap { texts(of: $0, .set) }
        case .object(let object):
            // Of an update, the names are paths.
            return (kind == .update ? object.members.map(\.name) : [])
                + object.members.flatMap { texts(of: $0.value, .set) }
        }
    }

    /// The value with its places filled. Throws `too_big` beyond so many bytes.
    static func filled(
        _ value: JSONValue, with fills: [String: String], bytesMax: Int
    ) throws(ArgumentError) -> JSONValue {
        var filling = EffectFilling(fills: fills, bytesLeft: bytesMax)
        return try filling.value(value)
    }

    /// The values of an update, by path.
    static func filledValues(
        _ value: JSONValue, with fills: [String: String], bytesMax: Int
    ) throws(ArgumentError) -> JSONObject {
        var filling = EffectFilling(fills: fills, bytesLeft: bytesMax)
        var values: JSONObject = [:]
        for member in value.object?.members ?? [] {
            let path = try PlaceText(member.name).filledPath(with: fills)
            values[String(path.text.dropFirst())] = try filling.value(member.value)
        }
        return values
    }
}

/// Fills places of a value, within a number of bytes.
private struct EffectFilling {
    let fills: [String: String]
    var bytesLeft: Int

    mutating func value(_ value: JSONValue) throws(ArgumentError) -> JSONValue {
        switch value {
        case .null, .bool, .number: return value
        case .string(let text):
            let filled = try PlaceText(text).filled(with: fills)
            bytesLeft -= filled.utf8.count
            guard bytesLeft >= 0 else {
                throw ArgumentError(reason: "too_big", "The value is too long with what fills it")
            }
            return .string(filled)
        case .array(let values):
            var elements: [JSONValue] = []
            for element in values { elements.append(try self.value(element)) }
            return .array(elements)
        case .object(let object):
            var members = JSONObject()
            for member in object.members { members.append(member.name, try self.value(member.value)) }
            return .object(members)
        }
    }
}

/// Checks what can be known of an effect before there is a response.
private struct EffectCheck {
    var hasText: Bool
    /// With a key in each place.
    var path: TreePath

    /// What stands for each place while it is checked.
    static func fills(for text: PlaceText) -> [String: String] {
        Dictionary(text.places.map { ($0.name, "x") }) { first, _ in first }
    }

    /// A path, or a part of it: what users write never comes into one.
    static func path(_ text: String) throws(ArgumentError) -> PlaceText {
        let path = try PlaceText(text)
        for place in path.places where place == .text || place == .name {
            throw ArgumentError(
                reason: "invalid_template", "{\(place.name)} cannot stand in a path; {uid}, {thread} and {data.x} can")
        }
        try path.filledPath(with: fills(for: path)).requireNode()
        return path
    }

    func value(_ value: JSONValue, of kind: EffectKind) throws {
        guard kind == .update else {
            try texts(value)
            return _ = try TreeNode(json: value, at: path, serverValues: TimestampsOnly())
        }
        guard let values = value.object, !values.isEmpty else {
            throw ArgumentError(
                reason: "invalid_value", "The value of update is an object of values by path, e.g. {\"unread\": 0}")
        }
        for member in values.members {
            let name = try Self.path(member.name)
            let below = try name.filledPath(with: Self.fills(for: name))
            guard !below.isRoot else {
                throw ArgumentError(
                    reason: "invalid_path", "A path of update names a node below the path of the effect")
            }
            try texts(member.value)
            _ = try TreeNode(json: member.value, at: path.appending(below), serverValues: TimestampsOnly())
        }
    }

    private func texts(_ value: JSONValue) throws(ArgumentError) {
        switch value {
        case .null, .bool, .number: break
        case .string(let text):
            if try PlaceText(text).places.contains(.text), !hasText {
                throw ArgumentError(reason: "invalid_template", "{text} needs an action with input")
            }
        case .array(let values): for element in values { try texts(element) }
        case .object(let object):
            for member in object.members {
                guard !member.name.contains(where: { $0 == "{" || $0 == "}" }) else {
                    throw ArgumentError(
                        reason: "invalid_template",
                        "The names of members have no places; in update, the paths have")
                }
                try texts(member.value)
            }
        }
    }
}

/// Paths of an update that are at or above each other, whatever fills their places.
private enum EffectConflicts {
    /// Throws `conflicting_paths`.
    static func refuse(_ names: [String]) throws(ArgumentError) {
        var fills: [String: String] = [:]
        var paths: [(name: String, keys: [TreeKey])] = []
        for name in names {
            let text = try PlaceText(name)
            // A different key for each place, which no one writes.
            for place in text.places where fills[place.name] == nil { fills[place.name] = "\u{E000}\(fills.count)" }
            paths.append((name, try text.filledPath(with: fills).keys))
        }
        var known: [[TreeKey]: String] = [:]
        for path in paths {
            if let other = known.updateValue(path.name, forKey: path.keys) { throw conflict(path.name, other) }
        }
        for path in paths {
            for count in 1..<max(1, path.keys.count) {
                if let upper = known[Array(path.keys.prefix(count))] { throw conflict(upper, path.name) }
            }
        }
    }

    private static func conflict(_ upper: String, _ lower: String) -> ArgumentError {
        ArgumentError(
            reason: "conflicting_paths",
            "The path \(upper) is at or above \(lower); an update may set each node only once, e.g. "
                + "{\"a/b\": 1, \"a/c\": 2}")
    }
}

/// An effect may be tried twice: it would count twice.
private struct TimestampsOnly: ServerValueSource {
    func number(for value: ServerValue, at _: ServerValueLocation) throws -> Double {
        guard value == .timestamp else {
            throw ArgumentError(
                reason: "invalid_server_value",
                "An effect may be tried twice, so it has no increment; {\".sv\": \"timestamp\"} can stand in it")
        }
        return 0
    }
}

extension RPCError {
    fileprivate static func wrong(_ parameter: String, _ error: ArgumentError) -> RPCError {
        .invalidArgument(parameter, reason: error.reason, error.message)
    }
}
