import HatoModel
import Testing

/// Changes of the feed, as the notifier decodes them.
@Suite struct ChangeCodingTests {
    private let params: JSONObject = [
        "subscription": "s1", "version": 7, "epoch": "e", "time": 1_795_000_000_000, "later": true,
        "changes": [
            [
                "pattern": "/a/{b}", "params": ["b": "c"], "path": "/a/c", "type": "updated", "before": ["x": 1],
                "after": ["x": 2], "uid": "u1", "partial": true, "truncated": false, "many": false, "new": 1,
            ],
            ["path": "/b", "type": "deleted", "uid": nil, "params": nil, "partial": nil],
            ["path": "/c", "type": "created", "after": "leaf", "truncated": true, "many": true],
        ],
    ]

    @Test func everyMemberIsReadAsItsDeclarationSays() throws {
        let change = try Messages.Change.decode(params)
        #expect(change.members["later"] == nil && change.members["changes"]?.array?[0]["new"] == nil)
        #expect(change.changes[1].uid == nil && change.changes[1].before == nil)
        #expect(change.changes[0].before == ["x": 1] && change.changes[2].after == "leaf")
        #expect(change.changes.count == 3 && change.changes[0].params == ["b": "c"])
        let example = Messages.Change.example.members
        #expect(try Messages.Change.decode(example).changes.first?.path == Messages.Change.example.changes.first?.path)
    }

    @Test func whatIsMissingOrOfAnotherTypeIsRefusedByName() {
        func parameter(_ change: (inout JSONObject) -> Void) -> String? {
            var params = params
            change(&params)
            do {
                _ = try Messages.Change.decode(params)
                return nil
            } catch { return error.parameter }
        }
        for name in ["subscription", "version", "epoch", "time", "changes"] {
            #expect(parameter { $0[name] = nil } == name)
            #expect(parameter { $0[name] = ["x": 1] } == name)
        }
        for (name, value) in [("version", 0.5), ("time", 1e300), ("changes", [1])] as [(String, JSONValue)] {
            #expect(parameter { $0[name] = value }?.split(separator: ".").first.map(String.init) == name)
        }
        for (name, value) in [
            ("path", nil), ("type", nil), ("type", "moved"), ("pattern", 1), ("params", ["b": 1]), ("uid", 1),
            ("partial", "yes"), ("truncated", 1), ("many", 0),
        ] as [(String, JSONValue?)] {
            var entry: JSONObject = ["path": "/a", "type": "created"]
            entry[name] = value
            #expect(parameter { $0["changes"] = [.object(entry)] } != nil, "\(name)")
        }
    }
}
