import HatoModel
import Testing

@testable import HatoTree

/// The updates of a query's listeners, case by case; `QueryHistoryTests` checks random ones.
@Suite struct QueryWindowTests {
    static let rules = #"{"rules": {"m": {".indexOn": "date"}}}"#

    private struct World {
        var tree: IndexedTree
        var window: QueryWindow

        init(_ data: JSONValue, _ query: JSONValue) throws {
            tree = try IndexedTree(rules: QueryWindowTests.rules)
            try tree.set("/m", data)
            let path = try TreePath("/m")
            let query = try TreeQuery(query)
            let plan = QueryPlan(query, at: path, in: tree.catalog)
            window = try QueryWindow(query, at: path, by: plan, reading: tree.runner)
        }

        mutating func hear(_ changes: [PathChange]) throws -> String {
            try text(of: window.apply(changes, reading: tree.runner))
        }

        mutating func hear(commits: [[PathChange]]) throws -> String {
            try text(of: window.apply(commits: commits, reading: tree.runner))
        }

        private func text(of update: ListenerUpdate) -> String {
            guard case .events(let events) = update else { return update == .fresh ? "fresh" : "nothing" }
            var writer = JSONWriter()
            for event in events { event.write(to: &writer) }
            return String(decoding: writer.bytes, as: UTF8.self)
        }
    }

    private static let three: JSONValue = ["a": ["date": 1], "b": ["date": 2], "c": ["date": 3]]

    @Test func newestComesInAndOldestGoesOut() throws {
        var world = try World(Self.three, ["orderBy": "date", "limitToLast": 2])
        #expect(
            try world.hear(world.tree.set("/m/d", ["date": 4]))
                == #"{"type":"patch","path":"/","data":{"b":null,"d":{"date":4}}}"#)
        #expect(try world.hear(world.tree.set("/m/x", ["date": 0])) == "nothing")
        #expect(world.window.count == 2)
    }

    @Test func removedChildIsReplacedByTheNext() throws {
        var world = try World(Self.three, ["orderBy": "date", "limitToLast": 2])
        #expect(
            try world.hear(world.tree.set("/m/c", .null))
                == #"{"type":"patch","path":"/","data":{"c":null,"a":{"date":1}}}"#)
        #expect(try world.hear(world.tree.set("/m/b", .null)) == #"{"type":"put","path":"/b","data":null}"#)
        #expect(try world.hear(world.tree.set("/m/z", ["date": 0])) == #"{"type":"put","path":"/z","data":{"date":0}}"#)
    }

    @Test func childThatMovesBeyondTheEdgeIsReplaced() throws {
        var world = try World(Self.three, ["orderBy": "date", "limitToLast": 2])
        #expect(
            try world.hear(world.tree.set("/m/c/date", 0))
                == #"{"type":"patch","path":"/","data":{"c":null,"a":{"date":1}}}"#)
    }

    @Test func changeInsideAChildIsSentAlone() throws {
        var world = try World(Self.three, ["orderBy": "date", "limitToLast": 2])
        #expect(try world.hear(world.tree.set("/m/c/text", "鳩")) == #"{"type":"put","path":"/c/text","data":"鳩"}"#)
        #expect(try world.hear(world.tree.set("/m/a/text", "鳩")) == "nothing")
        #expect(try world.hear(world.tree.set("/elsewhere", 1)) == "nothing")
    }

    @Test func commitsOfOneSyncAreSentAsOneEvent() throws {
        var world = try World(Self.three, ["orderBy": "date", "limitToLast": 2])
        var changes = try world.tree.set("/m/d", ["date": 4])
        changes += try world.tree.set("/m/e", ["date": 5])
        changes += try world.tree.set("/m/d", .null)
        changes += try world.tree.set("/m/c/text", "x")
        #expect(
            try world.hear(changes)
                == #"{"type":"patch","path":"/","data":{"b":null,"c/text":"x","e":{"date":5}}}"#)
    }

    @Test func commitsOfOneSyncThatWriteDifferentChildrenHaveEventsOfTheirOwn() throws {
        var world = try World(Self.three, ["orderBy": "date", "limitToLast": 2])
        let commits = [
            try world.tree.set("/m/d", ["date": 4]), try world.tree.set("/m/x", ["date": 0]),
            try world.tree.set("/m/e", ["date": 5]),
        ]
        #expect(
            try world.hear(commits: commits)
                == #"{"type":"patch","path":"/","data":{"b":null,"d":{"date":4}}}"#
                + #",{"type":"patch","path":"/","data":{"c":null,"e":{"date":5}}}"#)
    }

    @Test func commitsAreMergedFromAChildOnThatIsWrittenAgain() throws {
        var world = try World(Self.three, ["orderBy": "date", "limitToLast": 2])
        // "a" comes into view by the second commit, and is written by the third.
        let commits = [
            try world.tree.set("/m/c/text", "x"), try world.tree.set("/m/b", .null),
            try world.tree.set("/m/a/text", "y"),
        ]
        #expect(
            try world.hear(commits: commits)
                == #"{"type":"put","path":"/c/text","data":"x"}"#
                + #",{"type":"patch","path":"/","data":{"b":null,"a":{"date":1,"text":"y"}}}"#)
    }

    @Test func largeCommitsOfOneSyncAreMerged() throws {
        var world = try World(Self.three, ["orderBy": "date", "limitToLast": 1])
        let text = JSONValue.string(String(repeating: "x", count: 100_000))
        let commits = try (4...7).map { try world.tree.set("/m/d\($0)", ["date": .number(Double($0)), "text": text]) }
        let shown = try world.hear(commits: commits)
        #expect(shown.hasPrefix(#"{"type":"patch","path":"/","data":{"c":null,"d7":{"date":7"#))
        #expect(!shown.contains("d6"))
    }

    @Test func commitsOfOneSyncAreMergedForALargeWindow() throws {
        var world = try World(
            .object(JSONObject(uniqueMembers: (0..<5_000).map { .init("k\($0)", ["date": 1]) })),
            ["orderBy": "date", "limitToLast": 5_000])
        let commits = try (0..<3).map { try world.tree.set("/m/z\($0)", ["date": 2]) }
        #expect(try world.hear(commits: commits).ranges(of: "patch").count == 1)
    }

    @Test func windowIsAsBeforeWhenAReaderFailsBetweenCommits() throws {
        var world = try World(Self.three, ["orderBy": "date", "limitToLast": 2])
        let commits = [try world.tree.set("/m/d", ["date": 4]), try world.tree.set("/m/e", ["date": 5])]
        var failures = 0
        for rows in 0..<12 {
            let reader = MeteredReader(world.tree.rows, ReadingMeter(rows: rows, bytes: .max))
            let runner = QueryRunner(reader, codec: world.tree.codec, indexCodec: world.tree.indexCodec)
            var (failing, fresh) = (world.window, world.window)
            do {
                _ = try failing.apply(commits: commits, reading: runner)
            } catch is ReadingMeter.Exhausted {
                failures += 1
                #expect(
                    try failing.apply(commits: commits, reading: world.tree.runner)
                        == fresh.apply(commits: commits, reading: world.tree.runner))
            }
        }
        #expect(failures > 1)
    }

    @Test func rangeKeepsNoSortValuesAndReportsAddedAndRemovedChildren() throws {
        var world = try World(Self.three, ["orderBy": "date", "startAt": 2])
        #expect(world.window.count == 2)
        #expect(try world.hear(world.tree.set("/m/a/date", 2)) == #"{"type":"put","path":"/a","data":{"date":2}}"#)
        #expect(try world.hear(world.tree.set("/m/b/date", 1)) == #"{"type":"put","path":"/b","data":null}"#)
        #expect(try world.hear(world.tree.set("/m/b/text", "x")) == "nothing")
    }

    @Test func orderAloneKeepsNothing() throws {
        var world = try World(Self.three, ["orderBy": "date"])
        #expect(world.window.count == 0)
        #expect(try world.hear(world.tree.set("/m/a/date", 9)) == #"{"type":"put","path":"/a/date","data":9}"#)
    }

    @Test func writeAboveIsAFreshValueOrNothing() throws {
        var world = try World(Self.three, ["orderBy": "date", "limitToLast": 2])
        #expect(try world.hear(world.tree.set("/", ["m": Self.three, "n": 1])) == "nothing")
        #expect(try world.hear(world.tree.set("/m", ["q": ["date": 1]])) == "fresh")
        #expect(try world.window.sortKeys(reading: world.tree.runner).map(\.key.text) == ["q"])
        #expect(try world.hear(world.tree.set("/m", .null)) == "fresh")
        #expect(world.window.count == 0)
    }

    @Test func manyChangesInOneChildAreTheWholeChild() throws {
        var world = try World(Self.three, ["orderBy": "date", "limitToLast": 2])
        var changes: [PathChange] = []
        for index in 0..<100 { changes += try world.tree.set("/m/c/f\(index)", 1) }
        let events = try world.hear(changes)
        #expect(events.hasPrefix(#"{"type":"put","path":"/c","data":{"date":3,"f0":1,"#))
    }

    /// The whole value is written from its rows, and refused when it is too big.
    @Test func tooBigEventIsAFreshValue() throws {
        let long = JSONValue.string(String(repeating: "x", count: 400))
        for query: JSONValue in [
            ["orderBy": "date", "limitToLast": 2], ["orderBy": "date", "startAt": 2], ["orderBy": "date"],
        ] {
            var world = try World(Self.three, query)
            func hear(_ changes: [PathChange]) throws -> String {
                let (tree, path) = (world.tree, world.window.path)
                let runner = QueryRunner(tree.rows, codec: tree.codec, indexCodec: tree.indexCodec, bytesMax: 1_000)
                let update = try world.window.apply(changes, reading: runner)
                let plan = QueryPlan(world.window.query, at: path, in: tree.catalog)
                let fresh = try QueryWindow(world.window.query, at: path, by: plan, reading: tree.runner)
                #expect(world.window.count == fresh.count)
                return if case .events = update { "events" } else { "\(update)" }
            }
            // One child that becomes visible, several of one group, and one that is written at many paths.
            #expect(try hear(world.tree.set("/m/d", ["date": 4, "t": long, "u": long, "v": long])) == "fresh")
            #expect(try hear(world.tree.set("/m/d", ["date": 4])) == "events")
            var changes: [PathChange] = []
            for key in ["b", "c", "d"] {
                changes += try world.tree.set("/m/\(key)/t", long)
                changes += try world.tree.set("/m/\(key)/date", 7)
            }
            for index in 0..<100 { changes += try world.tree.set("/m/d/f\(index)", 1) }
            #expect(try hear(changes) == "fresh")
            #expect(try hear(world.tree.set("/m/d/f1", 2)) == "events")
        }
    }

    @Test func indexThatNamesAChildTwiceIsNoTrap() throws {
        var tree = try IndexedTree(rules: Self.rules)
        try tree.set("/m", Self.three)
        let path = try TreePath("/m")
        let definition = try #require(tree.catalog.indexes.first?.definition)
        let collection = tree.indexCodec.prefix(of: definition.id, collection: path.keys)
        let row = IndexKeyCodec.row(collection, SortKey(.leaf(.number(9)), TreeKey(unchecked: "b")))
        let nothing: [UInt8] = []
        tree.rows.put(row.span, nothing.span)
        let query = try TreeQuery(["orderBy": "date", "limitToLast": 2])
        let plan = QueryPlan(query, at: path, in: tree.catalog)
        var window = try QueryWindow(query, at: path, by: plan, reading: tree.runner)
        for date in [0, 5, 10] as [JSONValue] {
            for key in ["a", "b", "c", "d"] {
                _ = try window.apply(tree.set("/m/\(key)", ["date": date]), reading: tree.runner)
                _ = try window.apply(tree.set("/m/\(key)", .null), reading: tree.runner)
            }
        }
    }

    @Test func pushIntoAWindowReadsOnlyThatChild() throws {
        var children: JSONObject = [:]
        for index in 0..<200 { children["k\(index)"] = ["date": .number(Double(index))] }
        var world = try World(.object(children), ["orderBy": "date", "limitToLast": 50])
        let changes = try world.tree.set("/m/new", ["date": 1000, "text": "x"])
        let rows = CountingRows(world.tree.rows)
        let runner = QueryRunner(rows, codec: world.tree.codec, indexCodec: world.tree.indexCodec)
        _ = try world.window.apply(changes, reading: runner)
        #expect(rows.read < 10)
    }

    @Test func removedChildrenAreReplacedWithoutReadingForAWhile() throws {
        var children: JSONObject = [:]
        for index in 100..<300 { children["k\(index)"] = ["date": .number(Double(index))] }
        var world = try World(.object(children), ["orderBy": "date", "limitToLast": 50])
        var scans: [Int] = []
        for index in (250..<300).reversed() {
            let changes = try world.tree.set("/m/k\(index)", .null)
            let rows = CountingRows(world.tree.rows)
            let runner = QueryRunner(rows, codec: world.tree.codec, indexCodec: world.tree.indexCodec)
            _ = try world.window.apply(changes, reading: runner)
            #expect(try world.window.sortKeys(reading: runner).map(\.key.text).first == "k\(index - 50)")
            if rows.read > 20 { scans.append(index) }
        }
        #expect(scans.count <= 2)
    }

    /// A queue whose front is removed all the time: a read of the next children from the beginning would step over the
    /// tombstones of everything removed.
    @Test func nextChildrenAreReadAfterTheKnownOnes() throws {
        let rows = RowsWithTraces()
        let codec = TreeKeyCodec(prefix: [1])
        let planner = WritePlanner(codec: codec)
        let queue = try TreePath("/queue")
        func apply(_ mutation: Mutation) throws -> [PathChange] {
            let plan = try planner.plan(mutation, reading: rows, at: 1)
            plan.rows.apply(to: rows)
            return plan.changes
        }
        for number in 1_000..<1_500 { _ = try apply(.set(["text": "x"], at: queue.child(TreeKey("k\(number)")))) }
        let runner = QueryRunner(rows, codec: codec, indexCodec: IndexKeyCodec(prefix: [2]))
        let query = TreeQuery(order: .key, limit: .first(2))
        var window = try QueryWindow(query, at: queue, by: .keys, reading: runner)
        var steps = 0
        for number in 1_000..<1_400 {
            let changes = try apply(.remove(at: queue.child(TreeKey("k\(number)"))))
            let before = rows.steps
            _ = try window.apply(changes, reading: runner)
            steps += rows.steps - before
            let shown = try window.sortKeys(reading: runner).map(\.key.text)
            #expect(shown == ["k\(number + 1)", "k\(number + 2)"])
        }
        #expect(steps < 1_200)
    }

    @Test func windowIsUnchangedWhenTheReaderFails() throws {
        for query: JSONValue in [
            ["orderBy": "date", "limitToLast": 2], ["orderBy": "date", "startAt": 2], ["orderBy": "date"],
        ] {
            var world = try World(Self.three, query)
            let changes = try world.tree.set("/m/d", ["date": 4, "text": "x"])
            for rows in 0..<6 {
                let meter = ReadingMeter(rows: rows, bytes: .max)
                let reader = MeteredReader(world.tree.rows, meter)
                let runner = QueryRunner(reader, codec: world.tree.codec, indexCodec: world.tree.indexCodec)
                var failing = world.window
                do {
                    _ = try failing.apply(changes, reading: runner)
                } catch is ReadingMeter.Exhausted {
                    let events = try failing.apply(changes, reading: world.tree.runner)
                    var fresh = world.window
                    #expect(try events == fresh.apply(changes, reading: world.tree.runner))
                }
            }
        }
    }
}
