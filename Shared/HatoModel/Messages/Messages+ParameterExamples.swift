// What stands in errors about parameters that the examples of the methods leave out.

extension MessagesExamples {
    static let query: JSONValue = ["orderBy": "date", "limitToLast": 50]
    static let etag: JSONValue = "eMfSk0nU+CieTkCbO5r7cKNp7qU="
    static let rules: JSONValue = #"{"rules": {".read": "auth != null"}}"#
    /// The parameter that all methods have.
    static let database: JSONObject = ["database": "default"]

    fileprivate static func withDatabase(_ others: JSONObject) -> JSONObject {
        var all = database
        for member in others.members { all[member.name] = member.value }
        return all
    }
}

extension Messages.Get {
    public static var parameterExamples: JSONObject {
        MessagesExamples.withDatabase([
            "query": MessagesExamples.query, "shallow": true, "export": true, "etag": true,
        ])
    }
}

extension Messages.Listen {
    public static var parameterExamples: JSONObject {
        MessagesExamples.withDatabase([
            "query": MessagesExamples.query, "since": 17, "epoch": .string(MessagesExamples.epoch),
            "etag": MessagesExamples.etag, "coalesceMs": 100,
        ])
    }
}

extension Messages.Set {
    public static var parameterExamples: JSONObject {
        MessagesExamples.withDatabase(["ifMatch": MessagesExamples.etag, "ifVersion": 17])
    }
}

extension Messages.Push {
    public static var parameterExamples: JSONObject {
        MessagesExamples.withDatabase(["key": .string(MessagesExamples.key.text)])
    }
}

extension Messages.Remove {
    public static var parameterExamples: JSONObject {
        MessagesExamples.withDatabase(["ifMatch": MessagesExamples.etag])
    }
}

extension Messages.Follow {
    public static var parameterExamples: JSONObject {
        MessagesExamples.withDatabase(["after": 17, "epoch": .string(MessagesExamples.epoch)])
    }
}

extension Messages.Rules.Check {
    public static var parameterExamples: JSONObject {
        MessagesExamples.withDatabase([
            "value": MessagesExamples.value, "query": MessagesExamples.query, "as": ["uid": "masuo"],
        ])
    }
}

extension Messages.Databases.Create {
    public static var parameterExamples: JSONObject { ["rules": MessagesExamples.rules] }
}

extension Messages.Export {
    public static var parameterExamples: JSONObject {
        MessagesExamples.withDatabase(["snapshot": "1-3w5e11264sgsf", "after": "/messages/m1", "limit": 1000])
    }
}

extension Messages.Import {
    public static var parameterExamples: JSONObject {
        MessagesExamples.withDatabase(["value": ["title": "磯野家"], "disableTriggers": true])
    }
}

extension Messages.Update { public static var parameterExamples: JSONObject { MessagesExamples.database } }
extension Messages.OnDisconnect.Set { public static var parameterExamples: JSONObject { MessagesExamples.database } }
extension Messages.OnDisconnect.Update { public static var parameterExamples: JSONObject { MessagesExamples.database } }
extension Messages.OnDisconnect.Remove { public static var parameterExamples: JSONObject { MessagesExamples.database } }
extension Messages.OnDisconnect.Cancel { public static var parameterExamples: JSONObject { MessagesExamples.database } }
extension Messages.Unlisten { public static var parameterExamples: JSONObject { MessagesExamples.database } }
extension Messages.Unfollow { public static var parameterExamples: JSONObject { MessagesExamples.database } }
extension Messages.Rules.Get { public static var parameterExamples: JSONObject { MessagesExamples.database } }
extension Messages.Rules.Set { public static var parameterExamples: JSONObject { MessagesExamples.database } }
extension Messages.Indexes.List { public static var parameterExamples: JSONObject { MessagesExamples.database } }
extension Messages.Stats { public static var parameterExamples: JSONObject { MessagesExamples.database } }
extension Messages.Backup { public static var parameterExamples: JSONObject { MessagesExamples.database } }
extension Messages.Verify { public static var parameterExamples: JSONObject { MessagesExamples.database } }
