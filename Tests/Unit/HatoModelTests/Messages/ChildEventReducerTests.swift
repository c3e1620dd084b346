import HatoModel
import Testing

/// The events of a listener that apps receive, for the events that the server sends (spec §8.5, "Event expectations").
@Suite struct ChildEventReducerTests {
    private static func put(_ path: String, _ data: JSONValue) -> Messages.Event.Entry {
        .init(type: .put, path: path, data: data)
    }

    private static func patch(_ data: JSONValue) -> Messages.Event.Entry { .init(type: .patch, path: "/", data: data) }

    private func text(_ events: [ChildEvent]) -> [String] {
        events.map { event in
            switch event {
            case .removed(let key, _): "-\(key)"
            case .added(let key, _, let previous): "+\(key) after \(previous?.text ?? "nothing")"
            case .moved(let key, _, let previous): "~\(key) after \(previous?.text ?? "nothing")"
            case .changed(let key, _, let previous): "*\(key) after \(previous?.text ?? "nothing")"
            }
        }
    }

    private func byDate() throws -> ChildEventReducer {
        ChildEventReducer(try TreeQuery(["orderBy": "date"]))
    }

    @Test func firstValueIsReportedChildByChildInQueryOrder() throws {
        var listener = try byDate()
        let events = try listener.apply([
            Self.put("/", ["b": ["date": 1], "a": ["date": 2], "10": [:], "9": ["date": 1]])
        ])
        #expect(text(events) == ["+9 after nothing", "+b after 9", "+a after b"])
        #expect(listener.children.map(\.key.text) == ["9", "b", "a"])
    }

    @Test func nullAtTheStartIsNoEventButAValue() throws {
        var listener = ChildEventReducer()
        #expect(try listener.apply([Self.put("/", .null)]).isEmpty)
        #expect(listener.node == .empty)
    }

    @Test func kindsComeInTheirOrderAndWithinAKindInQueryOrder() throws {
        var listener = try byDate()
        _ = try listener.apply([
            Self.put("/", ["a": ["date": 1], "b": ["date": 2], "c": ["date": 3], "d": ["date": 4], "e": ["date": 5]])
        ])
        let events = try listener.apply([
            Self.patch([
                "d": .null, "b": .null, "x": ["date": 9], "w": ["date": 0], "a/date": 7, "e/text": "t", "c/date": 3.5,
            ])
        ])
        #expect(
            text(events) == [
                "-b", "-d", "+w after nothing", "+x after a", "~c after w", "~a after e", "*c after w", "*e after c",
                "*a after e",
            ])
        #expect(listener.children.map(\.key.text) == ["w", "c", "e", "a", "x"])
    }

    @Test func movedIsReportedThoughTheRankIsTheSame() throws {
        var listener = try byDate()
        _ = try listener.apply([Self.put("/", ["a": ["date": 1], "b": ["date": 2]])])
        #expect(text(try listener.apply([Self.put("/b/date", 3)])) == ["~b after a", "*b after a"])
    }

    @Test func changeElsewhereInTheChildDoesNotMoveIt() throws {
        var listener = try byDate()
        _ = try listener.apply([Self.put("/", ["a": ["date": 1], "b": ["date": 2]])])
        #expect(text(try listener.apply([Self.put("/a/text", "鳩")])) == ["*a after nothing"])
    }

    @Test func sameValueAgainIsNoEvent() throws {
        var listener = ChildEventReducer()
        _ = try listener.apply([Self.put("/", ["a": 1, "b": ["c": 2]])])
        #expect(try listener.apply([Self.put("/", ["a": 1, "b": ["c": 2]])]).isEmpty)
        #expect(try listener.apply([Self.put("/b/c", 2), Self.put("/x", .null)]).isEmpty)
    }

    @Test func severalEntriesOfANotificationAreOneChange() throws {
        var listener = ChildEventReducer()
        let events = try listener.apply([Self.put("/", ["a": 1]), Self.put("/b", 2), Self.put("/a", .null)])
        #expect(text(events) == ["+b after nothing"])
    }

    @Test func leafHasNoChildrenAndTakesThemAll() throws {
        var listener = ChildEventReducer()
        _ = try listener.apply([Self.put("/", ["a": 1, "b": 2])])
        #expect(text(try listener.apply([Self.put("/", 5)])) == ["-a", "-b"])
        #expect(listener.node == .leaf(.number(5)))
        #expect(text(try listener.apply([Self.put("/x/y", 1)])) == ["+x after nothing"])
        #expect(text(try listener.apply([Self.put("/x/y", .null)])) == ["-x"])
        #expect(listener.node == .empty)
    }

    @Test func priorityMovesAChildOfTheDefaultOrder() throws {
        var listener = ChildEventReducer()
        _ = try listener.apply([Self.put("/", ["a": 1, "b": 2])])
        #expect(text(try listener.apply([Self.put("/a/.priority", 1)])) == ["~a after b", "*a after b"])
    }

    @Test func priorityOfANodeThatThePatchItselfMakesIsKept() throws {
        var listener = ChildEventReducer()
        _ = try listener.apply([Self.put("/", .null)])
        _ = try listener.apply([Self.patch(["a/.priority": "p", "a/x": 1])])
        #expect(listener.node.child(try TreeKey("a")).priority == .string("p"))
    }

    @Test func priorityOfANodeThatChangesItsOnlyChildIsKept() throws {
        var listener = ChildEventReducer()
        _ = try listener.apply([Self.put("/", ["a": 1, "r": ["x": 1, ".priority": 2], ".priority": 7])])
        _ = try listener.apply([Self.patch(["a": .null, "r/x": .null, "r/y": 1])])
        #expect(listener.node.export == ["r": ["y": 1, ".priority": 2], ".priority": 7])
        _ = try listener.apply([Self.patch(["r": .null, "b": 1])])
        #expect(listener.node.export == ["b": 1, ".priority": 7])
    }

    @Test func manyChangesAtOnceAreSortedAnew() throws {
        var listener = try byDate()
        var children: JSONObject = [:]
        for index in 0..<100 { children["k\(index)"] = ["date": .number(Double(index % 7))] }
        _ = try listener.apply([Self.put("/", .object(children))])
        let expected = listener.query.select(from: listener.node).map(\.key)
        #expect(listener.children.map(\.key) == expected)
        #expect(listener.children.count == 100)
    }

    @Test func wrongEventsAreRefusedAndChangeNothing() throws {
        var listener = ChildEventReducer()
        _ = try listener.apply([Self.put("/", ["a": 1])])
        for event in [
            Self.put("/a#", 1), Self.patch(5), Self.patch(["a": 2, "$": 1]), Self.put("/a", [".sv": "timestamp"]),
        ] {
            #expect(throws: ArgumentError.self) { try listener.apply([Self.put("/b", 2), event]) }
            #expect(try listener.node == TreeNode(json: ["a": 1]))
        }
    }
}
