import HatoModel

/// A member of a request, at any depth, and its declared type.
struct HostileSite {
    enum Step {
        case member(String)
        case element(Int)
    }

    enum Kind {
        case number, text, other, any
    }

    var steps: [Step]
    var kind: Kind

    var name: String {
        steps.map { step in
            switch step {
            case .member(let name): ".\(name)"
            case .element(let index): "[\(index)]"
            }
        }.joined()
    }

    /// The values to try for such a member; only a few with `isWrongType`.
    var values: [HostileValue] {
        switch kind {
        case .number: HostileValue.numbers + HostileValue.others + Array(HostileValue.texts.prefix(6))
        case .text: HostileValue.texts + HostileValue.others + Array(HostileValue.numbers.prefix(3))
        case .other: HostileValue.others + Array(HostileValue.numbers.prefix(3) + HostileValue.texts.prefix(3))
        case .any: HostileValue.numbers + HostileValue.others + HostileValue.texts
        }
    }
}

/// A method as its service describes it, with params to start from.
struct HostileMethod {
    /// Params that are valid, or nearly so, and their members that are worth changing.
    struct Sample {
        var params: JSONValue
        var sites: [HostileSite]
    }

    var name: String
    var samples: [Sample]

    /// Reads one method of an OpenRPC document.
    init?(_ json: JSONValue, of document: JSONValue) {
        guard let name = json["name"]?.string else { return nil }
        self.name = name
        let parameters = (json["params"]?.array ?? []).map { Self.resolved($0, of: document) }
        let example = json["examples"]?.array?.first?["params"]?.array ?? []
        var params: JSONObject = [:]
        for pair in example {
            if let name = pair["name"]?.string, let value = pair["value"] { params[name] = value }
        }
        samples = [
            Self.sample(
                .object(params), parameters.filter { $0["name"] != "auth" && $0["name"] != "as" }, unknown: true)
        ]
        if Self.withIdentity.contains(name) {
            params["as"] = Self.user
            samples.append(
                Self.sample(.object(params), parameters.filter { $0["name"] == "auth" || $0["name"] == "as" }))
        }
        for more in Self.more[name] ?? [] {
            let members = Set(more.object?.members.map(\.name) ?? [])
            samples.append(Self.sample(more, parameters.filter { members.contains($0["name"]?.string ?? "") }))
        }
    }

    private static let withIdentity: Set<String> = [
        "messages.get", "auth.account.get", "auth.account.update", "auth.account.delete", "notifier.devices.list",
    ]

    /// Times of its token are subtracted from other times.
    private static let user: JSONValue = [
        "uid": "u", "token": ["auth_time": 1_700_000_000, "iat": 1_700_000_000, "exp": 1, "nbf": 1, "a": "b"],
    ]

    /// Members that may hold megabytes, or are measured before anything else is done with them.
    private static let longMembers: [String: [HostileSite.Step]] = [
        "messages.set": [.member("value")], "messages.get": [.member("path")], "messages.rules.set": [.member("rules")],
        "auth.users.create": [.member("displayName")], "auth.signIn": [.member("password")],
        "notifier.send": [.member("notification"), .member("body")], "notifier.devices.register": [.member("url")],
    ]

    /// The member of the first sample that long texts are tried at.
    var longSite: HostileSite? { Self.longMembers[name].map { HostileSite(steps: $0, kind: .text) } }

    /// Params besides the example, for members that have a meaning only together with others.
    private static let more: [String: [JSONValue]] = [
        "messages.get": [
            ["path": "/chats", "query": ["orderBy": "x"]], ["path": "/chats", "query": ["orderBy": "$key"]],
        ],
        "messages.listen": [
            ["path": "/chats", "query": ["orderBy": "x", "limitToFirst": 2]],
            ["path": "/chats", "since": 1, "epoch": "e"],
        ],
        "messages.set": [
            ["path": "/h/n", "value": [".sv": ["increment": 1]]],
            ["path": "/h/p", "value": [".value": 1, ".priority": 2]],
        ],
        "messages.push": [["path": "/h/l", "value": 1, "key": "-P6iK_s-------------"]],
        "messages.update": [["path": "/h", "values": ["a/b": 1, "c": [".sv": ["increment": 1]]]]],
        "messages.onDisconnect.set": [["path": "/h/n", "value": [".sv": ["increment": 1]]]],
        "messages.rules.check": [
            ["operation": "get", "path": "/chats", "query": ["orderBy": "x"], "as": ["uid": "u", "token": ["a": 1]]],
            ["operation": "set", "path": "/h/n", "value": [".sv": ["increment": 1]], "as": ["uid": "u"]],
        ],
        "messages.rules.set": [["rules": "{\"rules\": {}}", "dryRun": true]],
        "messages.export": [["path": "/", "snapshot": "s", "after": "/chats", "limit": 1]],
        "messages.import": [["path": "/h/i", "rows": [["/a", 1], ["/b/.priority", 2]]]],
        "notifier.send": [
            [
                "to": ["devices": ["d"]], "notification": ["title": "t", "body": "b"], "data": ["a": "b"],
                "options": ["ttlSeconds": 60, "collapseKey": "k"],
            ]
        ],
        "notifier.triggers.set": [
            [
                "id": "t", "pattern": "/h/{id}", "on": ["created"], "recipients": ["uids": ["u"]],
                "notification": ["title": "{after.a}"], "data": ["a": "{id}"], "options": ["ttlSeconds": 60],
            ]
        ],
    ]

    private static func resolved(_ parameter: JSONValue, of document: JSONValue) -> JSONValue {
        guard let name = parameter["$ref"]?.string?.split(separator: "/").last else { return parameter }
        return document["components"]?["contentDescriptors"]?[String(name)] ?? parameter
    }

    private static func sample(_ params: JSONValue, _ parameters: [JSONValue], unknown: Bool = false) -> Sample {
        var sites = parameters.flatMap { parameter in
            let name = parameter["name"]?.string ?? ""
            return Self.sites(parameter["schema"] ?? [:], params[name], [.member(name)])
        }
        if unknown { sites.append(HostileSite(steps: [.member("noSuchMember")], kind: .other)) }
        return Sample(params: params, sites: sites)
    }

    /// The members of a value that has this schema, and of its example.
    private static func sites(
        _ schema: JSONValue, _ example: JSONValue?, _ steps: [HostileSite.Step]
    ) -> [HostileSite] {
        let types = schema["type"]?.array?.compactMap(\.string) ?? [schema["type"]?.string].compactMap { $0 }
        if types.contains("integer") || types.contains("number") { return [HostileSite(steps: steps, kind: .number)] }
        if types.contains("string") { return [HostileSite(steps: steps, kind: .text)] }
        if types.contains("boolean") { return [HostileSite(steps: steps, kind: .other)] }
        if let items = schema["items"] {
            return [HostileSite(steps: steps, kind: .other)]
                + sites(items, example?.array?.first, steps + [.element(0)])
        }
        guard let properties = schema["properties"]?.object else {
            let kind: HostileSite.Kind = types.isEmpty ? .any : .other
            return [HostileSite(steps: steps, kind: kind)] + leaves(example, steps)
        }
        return [HostileSite(steps: steps, kind: .other)]
            + properties.members.flatMap { sites($0.value, example?[$0.name], steps + [.member($0.name)]) }
    }

    /// The members of an example that no schema describes.
    private static func leaves(_ example: JSONValue?, _ steps: [HostileSite.Step]) -> [HostileSite] {
        switch example {
        case .object(let object)?:
            object.members.flatMap { leaf($0.value, steps + [.member($0.name)]) }
        case .array(let array)?:
            array.enumerated().flatMap { leaf($1, steps + [.element($0)]) }
        default: []
        }
    }

    private static func leaf(_ example: JSONValue, _ steps: [HostileSite.Step]) -> [HostileSite] {
        [HostileSite(steps: steps, kind: .any)] + leaves(example, steps)
    }
}

extension JSONValue {
    /// Sets the value at these steps, and creates missing members on the way.
    func setting(_ steps: ArraySlice<HostileSite.Step>, to value: JSONValue) -> JSONValue {
        guard let step = steps.first else { return value }
        switch step {
        case .member(let name):
            var object = object ?? [:]
            object[name] = (object[name] ?? .null).setting(steps.dropFirst(), to: value)
            return .object(object)
        case .element(let index):
            var array = array ?? []
            while array.count <= index { array.append(.null) }
            array[index] = array[index].setting(steps.dropFirst(), to: value)
            return .array(array)
        }
    }
}
