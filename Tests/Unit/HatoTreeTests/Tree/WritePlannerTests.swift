import HatoModel
import Testing

@testable import HatoTree

struct WritePlannerTests {
    let key = PushKey(milliseconds: 1_700_000_000_000, random: (1, 2))

    @Test func pushedChildIsReadBack() throws {
        let tree = MemoryTree()
        let plan = try tree.apply(
            .push(["text": "ただいま", "date": [".sv": "timestamp"]], at: TreePath("/rooms/r1"), key: key), at: 5)
        #expect(try tree.text("/rooms/r1/\(key)") == #"{"date":5,"text":"ただいま"}"#)
        #expect(plan.changes.count == 1)
        #expect(plan.changes[0].path == (try TreePath("/rooms/r1/\(key)")))
        #expect(plan.changes[0].before == .empty)
        #expect(plan.changes[0].existedDepth == 0)
        #expect(plan.changes[0].existsDepth == 3)
        #expect(plan.rows.count == 1)
    }

    @Test func samePushAgainChangesNothing() throws {
        let tree = MemoryTree()
        let value: JSONValue = [
            "text": "hi", "date": [".sv": "timestamp"], "n": [".value": [".sv": ["increment": 2]], ".priority": 1],
        ]
        try tree.apply(.push(value, at: TreePath("/r"), key: key, isClientKey: true), at: 5)
        let again = try tree.apply(.push(value, at: TreePath("/r"), key: key, isClientKey: true), at: 9)
        #expect(again.isEmpty)
        #expect(again.rows.isEmpty)
        #expect(try tree.text("/r/\(key)") == #"{"date":5,"n":2,"text":"hi"}"#)
    }

    @Test func pushOfAnotherValueUnderATakenKeyIsRefused() throws {
        let tree = MemoryTree()
        try tree.apply(.push(["text": "hi"], at: TreePath("/r"), key: key, isClientKey: true))
        for other: JSONValue in [["text": "ho"], "hi", ["text": [".sv": "timestamp"]], .null] {
            let error = #expect(throws: TreeError.self) {
                try tree.apply(.push(other, at: TreePath("/r"), key: key, isClientKey: true))
            }
            #expect(error?.rpcError.code == .alreadyExists)
        }
        #expect(try tree.text("/r/\(key)") == #"{"text":"hi"}"#)
    }

    @Test func pushWithoutReadAccessIsComparedWithItsWritersEarlierPush() throws {
        struct Pushed: ChangeHistory {
            var node: TreeNode?
            func wasWritten(_: TreePath, after _: UInt64) throws -> Bool { true }
            func node(pushedAt _: TreePath, byteCount _: Int) throws -> TreeNode? { node }
        }
        let tree = MemoryTree()
        let value: JSONValue = ["text": "stored"]
        var push = Mutation.push(value, at: try TreePath("/r"), key: key, isClientKey: true)
        push.hidesStored = true
        try tree.apply(push, history: Pushed())
        // The right guess and a wrong one have the same response.
        for guess: JSONValue in [value, "wrong"] {
            push.operation = .push(guess, key: key, isClientKey: true)
            let error = #expect(throws: TreeError.self) { try tree.apply(push, history: Pushed()) }
            #expect(error?.rpcError.reason == "key_exists")
        }
        let history = Pushed(node: try TreeNode(json: ["text": "mine", "date": 5]))
        push.operation = .push(["text": "mine", "date": [".sv": "timestamp"]], key: key, isClientKey: true)
        #expect(try tree.apply(push, history: history).isEmpty)
        push.operation = .push(value, key: key, isClientKey: true)
        #expect(throws: TreeError.self) { try tree.apply(push, history: history) }
    }

    @Test func pushIntoACollectionTakesOneRead() throws {
        let tree = MemoryTree()
        try tree.apply(.push(["text": "x"], at: TreePath("/rooms/r1"), key: key))
        try tree.apply(.push(["text": "x"], at: TreePath("/rooms/r2"), key: key))
        let counting = CountingReader(tree.rows)
        let later = PushKey(milliseconds: 1_800_000_000_000, random: (1, 2))
        let plan = try tree.planner.plan(.push("hi", at: TreePath("/rooms/r1"), key: later), reading: counting, at: 1)
        #expect(plan.changes[0].existedDepth == 2)
        // Whether the parent itself is one row.
        #expect(counting.gets == 1)
        #expect(counting.scans == 1)
        #expect(counting.rowsSeen == 1)
    }

    @Test func largeNodesAreReplacedByOneRange() throws {
        let tree = MemoryTree()
        let children = (0..<1500).map { JSONObject.Member("k\($0)", .number(Double($0))) }
        try tree.set("/big", .object(JSONObject(uniqueMembers: children)))
        let plan = try tree.set("/big", ["k7": 7, "other": 1])
        // One range and the new node; deleting the 1,499 leaves one by one would leave too many tombstones.
        #expect(plan.rows.count == 2)
        #expect(try tree.text("/") == #"{"big":{"k7":7,"other":1}}"#)
        #expect(plan.changes[0].before?.children?.count == 1500)
    }

    @Test func smallNodesAreReplacedRowByRow() throws {
        let tree = MemoryTree()
        try tree.set("/n", ["a": 1, "b": 2, "c": ["d": 3, "e": 4]])
        let plan = try tree.set("/n", ["a": 1, "b": 5, "c": ["d": 3], "f": 6])
        // The row of "c" is deleted, and the rest of it is put with "b" and "f".
        #expect(plan.rows.count == 4)
        #expect(try tree.text("/n") == #"{"a":1,"b":5,"c":{"d":3},"f":6}"#)
    }

    @Test func replacedNodesAreKeptUpToALimit() throws {
        let tree = MemoryTree()
        let half = JSONValue.string(String(repeating: "x", count: 600_000))
        try tree.set("/", ["a": half, "b": half, "c": [half, half], "d": 1])
        let plan = try tree.update("/", ["a": 1, "b": 2, "c": 3])
        #expect(plan.changes.map { $0.before == nil } == [false, true, true])
        #expect(try tree.text() == #"{"a":1,"b":2,"c":3,"d":1}"#)
        // A big text is one row, which gets the new value; the two of "c" are deleted one by one.
        #expect(plan.rows.count == 3 + 2)
    }

    @Test func largeUnreadNodesAreDeletedAsARange() throws {
        let tree = MemoryTree()
        let text = JSONValue.string(String(repeating: "x", count: 1000))
        try tree.set("/", ["big": .array(Array(repeating: text, count: 2000)), "bigger": 1])
        let plan = try tree.set("/big", .null)
        #expect(plan.rows.count == 1)
        #expect(plan.changes[0].before == nil)
        #expect(try tree.text() == #"{"bigger":1}"#)
    }

    @Test func emptiedParentsVanishWithTheirPriorities() throws {
        let tree = MemoryTree()
        try tree.set("/", ["a": [".priority": 1, "b": [".priority": 2, "c": ["d": 1]]], ".priority": 9])
        let plan = try tree.set("/a/b/c/d", .null)
        #expect(plan.changes[0].existedDepth == 4)
        #expect(plan.changes[0].existsDepth == 0)
        #expect(tree.rows.count == 0)
    }

    @Test func nodesEmptiedByOneUpdateVanishTogether() throws {
        let tree = MemoryTree()
        try tree.set(
            "/top", ["a": [".priority": 1, "x": 1], "b": ["c": [".priority": 2, "y": 1], "z": 3], ".priority": 3])
        let plan = try tree.update("/", ["top/b/z": nil, "top/a/x": nil, "top/b/c/y": nil])
        #expect(plan.changes.map(\.existsDepth) == [0, 0, 0])
        #expect(tree.rows.count == 0)
    }

    @Test func parentsWithOtherChildrenStay() throws {
        let tree = MemoryTree()
        try tree.set("/", ["a": [".priority": 1, "b": ["x": 1], "c": ["y": 1], "d": ["z": 1]], ".priority": 9])
        #expect(try tree.update("/a", ["b": nil, "d/z": nil]).changes.map(\.existsDepth) == [1, 1])
        #expect(try tree.text("/", .export) == #"{".priority":9,"a":{".priority":1,"c":{"y":1}}}"#)
        try tree.set("/a/c/y", .null)
        #expect(tree.rows.count == 0)
    }

    @Test func updateKeepsAParentThatItRefills() throws {
        let tree = MemoryTree()
        try tree.set("/a", ["x": 1, ".priority": 3])
        let plan = try tree.update("/a", ["x": nil, "y/z": 2])
        #expect(plan.changes.map(\.existsDepth) == [1, 3])
        #expect(try tree.text("/", .export) == #"{"a":{".priority":3,"y":{"z":2}}}"#)
    }

    @Test func changesShowWhenTheTreeIsCreatedAndRemoved() throws {
        let tree = MemoryTree()
        #expect(try tree.set("/a/b", 1).changes.map(\.rootCameOrWent) == [true])
        #expect(try tree.update("/", ["c": 1, "d": 1]).changes.map(\.rootCameOrWent) == [false, false])
        #expect(try tree.update("/", ["a/b": nil, "c": nil]).changes.map(\.rootCameOrWent) == [false, false])
        #expect(try tree.update("/", ["d": nil, "e": 1]).changes.map(\.rootCameOrWent) == [false, false])
        #expect(try tree.set("/e", .null).changes.map(\.rootCameOrWent) == [true])
        let both = try tree.update("/", [".priority": 1, "a": 1])
        #expect(both.changes.map(\.rootCameOrWent) == [true, true])
        let record = ChangeRecord(version: 1, time: 2, uid: nil, database: "d", changes: both.changes)
        #expect(try ChangeRecord(decoding: record.encoded) == record)
    }

    @Test func leafBecomesAnObjectAndKeepsItsPriority() throws {
        let tree = MemoryTree()
        try tree.set("/a", [".value": 5, ".priority": 7])
        let plan = try tree.set("/a/b/c", 1)
        #expect(plan.changes[0].replacedLeafDepth == 1)
        #expect(plan.changes[0].existedDepth == 1)
        #expect(plan.changes[0].standing == .leaf(.number(5), priority: .number(7)))
        #expect(try tree.text("/", .export) == #"{"a":{".priority":7,"b":{"c":1}}}"#)
        let push = try tree.apply(.push(1, at: TreePath("/a/b/c"), key: key))
        #expect(push.changes[0].replacedLeafDepth == 3)
        #expect(try tree.text("/a/b/c") == "{\"\(key)\":1}")
    }

    /// A large node is recorded as a change of its priority only.
    @Test func nodesWhosePrioritiesChangeAreRecordedIfTheyFit() throws {
        let tree = MemoryTree()
        let large = JSONValue.string(String(repeating: "x", count: PlanDraft.standingBytesMax))
        try tree.set("/", ["a": ["x": 1], "b": large, "c": 2, "d": ["e": ["f": 1]]])
        let plan = try tree.update("/", ["a/.priority": 1, "b/.priority": 1, "c/.priority": 1])
        #expect(plan.changes.map(\.standing) == [try TreeNode(json: ["x": 1]), nil, try TreeNode(json: 2)])
        // Other written data is in its own changes.
        let both = try tree.update("/", ["d/.priority": 1, "d/e/.priority": 1, "c": 3])
        #expect(both.changes.map(\.standing) == [nil, try TreeNode(json: ["f": 1]), nil])
    }

    @Test func writingNothingBelowALeafChangesNothing() throws {
        let tree = MemoryTree()
        try tree.set("/a", 5)
        #expect(try tree.set("/a/b", .null).isEmpty)
        #expect(try tree.update("/a", ["b/c": nil, "d": [:]]).isEmpty)
        #expect(try tree.text() == #"{"a":5}"#)
    }

    @Test func sameValueAgainIsNoChange() throws {
        let tree = MemoryTree()
        try tree.set("/a", ["b": 1, "c": [".value": "x", ".priority": 1]])
        let plan = try tree.set("/a", ["c": [".value": "x", ".priority": 1], "b": 1])
        #expect(plan.isEmpty)
        #expect(plan.rows.isEmpty)
    }

    @Test func priorityOfNothingIsNothing() throws {
        let tree = MemoryTree()
        #expect(try tree.apply(.setPriority(1, at: TreePath("/a"))).isEmpty)
        #expect(try tree.update("/", ["a/b": nil, "a/.priority": 1]).isEmpty)
        #expect(tree.rows.count == 0)
    }

    @Test func priorityIsSetBesideTheValueOfOneUpdate() throws {
        let tree = MemoryTree()
        let plan = try tree.update("/a", [".priority": "p", "b": 1])
        #expect(plan.changes.map { $0.path.text } == ["/a/.priority", "/a/b"])
        #expect(try tree.text("/", .export) == #"{"a":{".priority":"p","b":1}}"#)
        let again = try tree.apply(.setPriority(nil, at: TreePath("/a")))
        #expect(again.changes[0].before == .leaf(.string("p")))
        #expect(again.changes[0].after == .empty)
        #expect(try tree.text("/", .export) == #"{"a":{"b":1}}"#)
    }

    @Test func largeNodeIsHashedOnceUntilItChanges() throws {
        let tree = MemoryTree()
        let planner = WritePlanner(codec: tree.codec, cache: NodeCache())
        let path = try TreePath("/big")
        let reader = CountingRows(tree.rows)
        func apply(_ mutation: Mutation) throws {
            try planner.plan(mutation, reading: reader, at: 1).rows.apply(to: tree.rows)
        }
        let text = JSONValue.string(String(repeating: "x", count: 2_000))
        try apply(.set(.object(JSONObject(uniqueMembers: (0..<600).map { .init("k\($0)", text) })), at: path))
        func refusal(_ etag: String) throws -> (etag: String, read: Int) {
            let before = reader.read
            let error = #expect(throws: TreeError.self) { try apply(.set(1, at: path, if: .etag(etag))) }
            let data = try #require(error?.rpcError.data)
            #expect(data["value"] == nil, "an error carries no large node")
            return (try #require(data["etag"]?.string), reader.read - before)
        }
        let first = try refusal("wrong")
        #expect(first.read >= 600)
        let second = try refusal("wrong")
        #expect(second.etag == first.etag)
        #expect(second.read == 0)
        try apply(.set("other", at: TreePath("/big/k7")))
        let third = try refusal(first.etag)
        #expect(third.etag == SimpleHash.etag(try tree.nodes.node(at: path)))
        try apply(.set(1, at: path, if: .etag(third.etag)))
        #expect(try tree.text("/big") == "1")
    }

    @Test func etagIsThePrecondition() throws {
        let tree = MemoryTree()
        let path = try TreePath("/a")
        let first = try tree.apply(.set(1, at: path, if: .etag("null_etag")))
        #expect(first.etag == "YPVfR2bXt/lcDjiQZ8pOkAd3qkQ=")
        let second = try tree.apply(.set(2, at: path, if: .etag(first.etag ?? "")))
        let error = #expect(throws: TreeError.self) { try tree.apply(.set(3, at: path, if: .etag(first.etag ?? ""))) }
        #expect(error?.rpcError.code == .failedPrecondition)
        #expect(error?.rpcError.data["etag"] == second.etag.map { .string($0) })
        #expect(error?.rpcError.data["value"] == 2)
        let gone = try tree.apply(.remove(at: path, if: .etag(second.etag ?? "")))
        #expect(gone.etag == "null_etag")
    }

    @Test func versionIsThePrecondition() throws {
        struct Written: ChangeHistory {
            func wasWritten(_: TreePath, after version: UInt64) throws -> Bool { version < 7 }
            func node(pushedAt _: TreePath, byteCount _: Int) throws -> TreeNode? { nil }
        }
        let tree = MemoryTree()
        let path = try TreePath("/a")
        #expect(throws: TreeError.self) { try tree.apply(.set(1, at: path, if: .version(6)), history: Written()) }
        try tree.apply(.set(1, at: path, if: .version(7)), history: Written())
        #expect(throws: TreeError.self) { try tree.apply(.set(2, at: path, if: .version(7))) }
        #expect(try tree.text("/a") == "1")
    }

    @Test func wrongRequestsNameTheParameter() throws {
        let tree = MemoryTree()
        let wrong: [(Mutation, String, String)] = [
            (.set(["a.b": 1], at: .root), "value", "invalid_key"),
            (.set([".value": 1, "a": 2], at: .root), "value", "invalid_value"),
            (.set([".sv": "now"], at: .root), "value", "invalid_server_value"),
            (.set(true, at: try TreePath("/a/.priority")), "value", "invalid_priority"),
            (.update(["a": 1, "a/b": 2], at: .root), "values", "conflicting_paths"),
            (.update(["a": 1, "/a/": 2], at: .root), "values", "conflicting_paths"),
            (.update(["a/.priority": 1, "a": 2], at: .root), "values", "conflicting_paths"),
            (.update(["/": 1], at: .root), "values", "invalid_path"),
            (.update(["a#": 1], at: .root), "values", "invalid_key"),
            (.push(1, at: try TreePath("/a/.priority"), key: key), "path", "invalid_path"),
            (.update(["a": 1], at: try TreePath("/a/.priority")), "path", "invalid_path"),
            (.push(1, at: try TreePath(String(repeating: "/a", count: 32)), key: key), "path", "too_deep"),
            (.set(["a": 1], at: try TreePath(String(repeating: "/a", count: 32))), "value", "too_deep"),
        ]
        for (mutation, parameter, reason) in wrong {
            let error = #expect(throws: TreeError.self) { try tree.apply(mutation) }
            #expect(error?.rpcError.code == .invalidArgument, "\(mutation)")
            #expect(error?.rpcError.reason == reason, "\(mutation)")
            #expect(error?.rpcError.data["parameter"] == .string(parameter), "\(mutation)")
        }
        #expect(tree.rows.count == 0)
    }

    @Test func incrementsAddToTheStoredNumber() throws {
        let tree = MemoryTree()
        try tree.set("/", ["n": 5, "s": "x", "o": ["k": 1]])
        let more: JSONValue = [".sv": ["increment": 2]]
        try tree.update("/", ["n": more, "s": more, "o": more, "new/deep": more])
        #expect(try tree.text() == #"{"n":7,"new":{"deep":2},"o":2,"s":2}"#)
        try tree.apply(.setPriority(more, at: TreePath("/n")))
        try tree.apply(.setPriority(more, at: TreePath("/n")))
        #expect(try tree.text("/n", .export) == #"{".value":7,".priority":4}"#)
        try tree.set("/n", 1e308)
        #expect(throws: TreeError.self) { try tree.set("/n", [".sv": ["increment": 1e308]]) }
    }

    @Test func writingManyPathsOfANewNodeReadsOnce() throws {
        let tree = MemoryTree()
        try tree.set("/a", [".value": 5, ".priority": 1])
        var values = JSONObject()
        for index in 0..<300 { values.append("new/k\(index / 3)/f\(index % 3)", 1) }
        for (path, existed) in [("/a", 1), ("/b", 0)] {
            let counting = CountingReader(tree.rows)
            let plan = try tree.planner.plan(.update(values, at: TreePath(path)), reading: counting, at: 1)
            #expect(plan.changes.allSatisfy { $0.existedDepth == existed && $0.existsDepth == 4 })
            #expect(counting.scans + counting.gets < 20)
            plan.rows.apply(to: tree.rows)
        }
        #expect(try tree.nodes.node(at: .root).leafCount == 600)
        #expect(try tree.nodes.priority(at: TreePath("/a")) == .number(1))
    }

    @Test func removingManySiblingsReadsOnce() throws {
        let tree = MemoryTree()
        try tree.set("/list", .object(JSONObject(uniqueMembers: (0..<300).map { .init("k\($0)", ["a": 1]) })))
        var values = JSONObject()
        for index in 0..<300 { values.append("k\(index)", .null) }
        let counting = CountingReader(tree.rows)
        let plan = try tree.planner.plan(.update(values, at: TreePath("/list")), reading: counting, at: 1)
        #expect(plan.changes.allSatisfy { $0.existsDepth == 0 })
        #expect(counting.rowsSeen < 300 * 4)
        plan.rows.apply(to: tree.rows)
        #expect(tree.rows.count == 0)
    }
}

/// Counts the reads of another reader.
final class CountingReader: TreeReader {
    private let rows: any TreeReader
    private(set) var gets = 0
    private(set) var scans = 0
    private(set) var rowsSeen = 0
    /// Of the values.
    private(set) var bytesSeen = 0

    init(_ rows: any TreeReader) { self.rows = rows }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        gets += 1
        return try rows.get(key)
    }

    func scan(
        lower: [UInt8], upper: [UInt8]?, reverse: Bool,
        _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws {
        scans += 1
        try rows.scan(lower: lower, upper: upper, reverse: reverse) { key, value in
            rowsSeen += 1
            bytesSeen += value.count
            return try visit(key, value)
        }
    }
}
