import HatoModel
import HatoRules
import HatoTesting
import Testing

@testable import HatoTree

@Suite struct IndexTests {
    static let chat = #"{"rules": {"chats": {"$chat": {"messages": {".indexOn": "date"}}}}}"#

    private func messages(_ count: Int) -> JSONValue {
        var object: JSONObject = [:]
        for index in 0..<count {
            object["m\(index)"] = [
                "date": .number(Double(index * 7 % count)), "text": "鳩", "senderId": "masuo", "senderName": "マスオ",
            ]
        }
        return .object(object)
    }

    @Test func newestOfManyReadsOneIndexRowAndThatChild() throws {
        var tree = try IndexedTree(rules: Self.chat)
        try tree.set("/chats/c1/messages", messages(500))
        let rows = CountingRows(tree.rows)
        let runner = QueryRunner(rows, codec: tree.codec, indexCodec: tree.indexCodec)
        let query = try TreeQuery(["orderBy": "date", "limitToLast": 1])
        let path = try TreePath("/chats/c1/messages")
        let sortKeys = try runner.sortKeys(query, at: path, by: QueryPlan.indexed(query, at: path, in: tree.catalog))
        #expect(rows.read == 1)
        var writer = JSONWriter()
        try runner.write(sortKeys, at: path, .plain, to: &writer)
        #expect(rows.read <= 1 + 4)
        #expect(sortKeys.map(\.value) == [.leaf(.number(499))])
    }

    @Test func childrenInKeyOrderAreReadWithOneScan() throws {
        var tree = try IndexedTree(rules: Self.chat)
        var children: JSONObject = [:]
        for index in 0..<40 { children["k\(index + 10)"] = ["date": .number(Double(index)), "text": "鳩"] }
        try tree.set("/chats/c1/messages", .object(children))
        let rows = CountingRows(tree.rows)
        let runner = QueryRunner(rows, codec: tree.codec, indexCodec: tree.indexCodec)
        let query = try TreeQuery(["orderBy": "date", "limitToLast": 30])
        let path = try TreePath("/chats/c1/messages")
        let sortKeys = try runner.sortKeys(query, at: path, by: QueryPlan.indexed(query, at: path, in: tree.catalog))
        let before = rows.scans
        var writer = JSONWriter()
        try runner.write(sortKeys, at: path, .plain, to: &writer)
        #expect(rows.scans == before + 1)
        #expect(rows.read == 30 + 30)
    }

    @Test func resultThatIsTooBigIsDetectedEarly() throws {
        var tree = try IndexedTree(rules: Self.chat)
        try tree.set("/chats/c1/messages", messages(50))
        let path = try TreePath("/chats/c1/messages")
        let query = try TreeQuery(["orderBy": "date"])
        let rows = CountingRows(tree.rows)
        let runner = QueryRunner(rows, codec: tree.codec, indexCodec: tree.indexCodec, bytesMax: 300)
        let sortKeys = try runner.sortKeys(query, at: path, by: QueryPlan.indexed(query, at: path, in: tree.catalog))
        var writer = JSONWriter()
        writer.member("value")
        #expect {
            try runner.write(sortKeys, at: path, .plain, to: &writer)
        } throws: { error in
            if case TreeError.tooBig(bytesMax: 300) = error { true } else { false }
        }
        #expect(rows.read < 50 + 30)
    }

    @Test func pushIntoAnIndexedCollectionReadsNothingForTheIndex() throws {
        var tree = try IndexedTree(rules: Self.chat)
        try tree.set("/chats/c1/messages", messages(20))
        func reads(_ indexes: any IndexSet) throws -> Int {
            let rows = CountingRows(tree.rows)
            let push = Mutation.push(
                ["date": 99, "text": "x"], at: try TreePath("/chats/c1/messages"),
                key: try PushKey("-NjEtLV-000000000000"))
            _ = try WritePlanner(codec: tree.codec, indexes: indexes).plan(push, reading: rows, at: 0)
            return rows.read
        }
        #expect(try reads(IndexDeltas(tree.catalog, codec: tree.indexCodec)) == reads(NoIndexes()))
    }

    @Test func readWithoutAnIndexNamesTheMissingIndex() throws {
        var tree = try IndexedTree(rules: Self.chat)
        try tree.set("/chats/x/messages", messages(3))
        let path = try TreePath("/chats/x/messages")
        #expect {
            try QueryPlan.indexed(TreeQuery(["orderBy": "text"]), at: path, in: tree.catalog)
        } throws: { error in
            guard let error = (error as? QueryError)?.rpcError else { return false }
            return error.code == .failedPrecondition && error.reason == "index_not_defined"
                && error.message
                    == #"Index not defined, add ".indexOn": "text", for path "/chats/x/messages", to the rules"#
        }
        #expect(throws: QueryError.indexNotDefined(on: ".value", path: path)) {
            try QueryPlan.indexed(TreeQuery(["orderBy": "$value"]), at: path, in: tree.catalog)
        }
        #expect(try QueryPlan.indexed(TreeQuery(["orderBy": "$key"]), at: path, in: tree.catalog) == .keys)
        #expect(try QueryPlan.indexed(TreeQuery(), at: path, in: tree.catalog) == .priorities)
    }

    @Test func indexIsUsedOnlyWhenItIsBuilt() throws {
        var tree = IndexedTree()
        try tree.set("/chats/c1/messages", messages(9))
        try tree.set("/chats/c2/messages", messages(4))
        try tree.set("/users/u1", ["name": "masuo"])
        try tree.adopt(Self.chat)
        let query = try TreeQuery(["orderBy": "date"])
        let path = try TreePath("/chats/c1/messages")
        var pages = 0
        while try tree.buildPage(childrenMax: 4) {
            pages += 1
            if tree.catalog.building != nil { #expect(QueryPlan(query, at: path, in: tree.catalog) == .everyChild) }
        }
        #expect(pages >= 4)
        #expect(QueryPlan(query, at: path, in: tree.catalog).isIndexed)
        #expect(tree.indexRows.count == 13)
        #expect(tree.indexRows == tree.expectedIndexRows(tree.catalog.definitions))
        let definition = try #require(tree.catalog.definitions.first)
        #expect(try tree.indexCodec.count(definition, reading: tree.rows, limit: .max) == 13)
        #expect(try tree.indexCodec.count(definition, reading: tree.rows, limit: 5) == 5)
    }

    @Test func childThatIsRewrittenJustBeforeItsPageIsNotPassedOver() throws {
        var tree = IndexedTree()
        try tree.set("/chats/c1/messages", ["m0": ["text": "a"], "m1": ["text": "b"], "m2": ["text": "c"]])
        try tree.adopt(Self.chat)
        let isBuilding = try tree.buildPage(childrenMax: 1)
        #expect(isBuilding)
        // The next page begins at m1: its only row is deleted, another that sorts before it is put, its date stays
        // unset.
        try tree.set("/chats/c1/messages/m1/about", "x")
        try tree.set("/chats/c1/messages/m1/text", .null)
        try tree.build()
        #expect(try tree.keys(TreeQuery(["orderBy": "date"]), at: "/chats/c1/messages") == ["m0", "m1", "m2"])
        #expect(tree.indexRows == tree.expectedIndexRows(tree.catalog.definitions))
    }

    @Test func droppedIndexLosesItsRowsAndOthersKeepTheirs() throws {
        var tree = try IndexedTree(rules: #"{"rules": {"a": {".indexOn": ["x", "y"]}}}"#)
        try tree.set("/a", ["k": ["x": 1, "y": 2], "l": ["x": 3]])
        #expect(tree.indexRows.count == 4)
        let before = tree.catalog.definitions
        try tree.adopt(#"{"rules": {"a": {".indexOn": "y"}, "b": {}}}"#)
        #expect(tree.indexRows.count == 2)
        #expect(tree.catalog.definitions == before.filter { $0.on == "y" })
        #expect(tree.catalog.building == nil)
    }

    @Test func indexThatComesBackIsBuiltAnewUnderANewId() throws {
        var tree = try IndexedTree(rules: #"{"rules": {"a": {".indexOn": "x"}}}"#)
        try tree.set("/a", ["k": ["x": 1]])
        try tree.adopt(#"{"rules": {}}"#)
        try tree.set("/a/k/x", 2)
        try tree.adopt(#"{"rules": {"a": {".indexOn": "x"}}}"#)
        #expect(tree.catalog.definitions.map(\.id) == [2])
        try tree.build()
        #expect(try tree.keys(TreeQuery(["orderBy": "x", "equalTo": 2]), at: "/a") == ["k"])
    }

    @Test func literalBranchHidesTheIndexOfTheWildcard() throws {
        var tree = try IndexedTree(rules: #"{"rules": {"$any": {".indexOn": "x"}, "special": {}}}"#)
        try tree.set("/", ["a": ["k": ["x": 1]], "special": ["k": ["x": 1]]])
        #expect(tree.indexRows.count == 1)
        let query = try TreeQuery(["orderBy": "x"])
        #expect(QueryPlan(query, at: try TreePath("/a"), in: tree.catalog).isIndexed)
        #expect(!QueryPlan(query, at: try TreePath("/special"), in: tree.catalog).isIndexed)
    }

    @Test func renamedWildcardKeepsTheIndex() throws {
        var catalog = IndexCatalog()
        _ = catalog.adopt(try Rules.compile(#"{"rules": {"$a": {".indexOn": "x"}}}"#).indexes)
        #expect(catalog.adopt(try Rules.compile(#"{"rules": {"$b": {".indexOn": "x"}}}"#).indexes).isEmpty)
        #expect(catalog.definitions.map(\.id) == [1])
        #expect(catalog.definitions.first?.pattern.description == "/{b}")
    }

    @Test func catalogIsStoredAndReadBack() throws {
        var catalog = IndexCatalog()
        let rules = #"{"rules": {"c": {"$x": {".indexOn": ["a/b", ".value"]}, "é": {}}, ".indexOn": "z"}}"#
        _ = catalog.adopt(try Rules.compile(rules).indexes)
        var page = IndexPage(index: 1)
        catalog.pageApplied(page)
        page = IndexPage(index: 2)
        page.cursor = IndexCursor(row: [0, 255, 7], children: 12)
        catalog.pageApplied(page)
        let read = try #require(IndexCatalog(json: catalog.json))
        #expect(read == catalog)
        #expect(IndexCatalog(json: ["nextID": 1]) == nil)
        #expect(
            IndexCatalog(json: ["nextID": 2, "indexes": [["id": 1, "on": "a", "segments": [["key": "a#"]]]]]) == nil)
    }

    @Test func removingACollectionDropsItsRows() throws {
        var tree = try IndexedTree(rules: Self.chat)
        try tree.set("/chats", ["c1": ["messages": messages(5)], "c2": ["messages": messages(3)]])
        #expect(tree.indexRows.count == 8)
        try tree.set("/chats/c1", .null)
        #expect(tree.indexRows.count == 3)
        try tree.set("/", 5)
        #expect(tree.indexRows.isEmpty)
    }

    @Test func largeCollectionGoesByRange() throws {
        var tree = try IndexedTree(rules: Self.chat)
        try tree.set("/chats/c1/messages", messages(IndexDeltas.singleDeletesMax + 10))
        try tree.set("/chats/c2/messages", messages(2))
        try tree.set("/chats/c1", ["messages": ["only": ["date": 1]]])
        #expect(tree.indexRows.count == 3)
        #expect(tree.indexRows == tree.expectedIndexRows(tree.catalog.definitions))
    }

    /// For nodes that are too large, keys and fingerprints are kept, or less.
    @Test func rowsOfReplacedNodesAreDeletedWhateverIsKeptOfThem() throws {
        let seed = SeededRandom.seed()
        var random = RandomTree(random: SeededRandom(seed: seed))
        let rules = #"{"rules": {"a": {".indexOn": ["a", "b/a", ".value"]}, "$x": {"b": {".indexOn": "a"}}}}"#
        var tree = try IndexedTree(rules: rules)
        for step in 0..<4_000 {
            tree.beforeBytesMax = random.random.pick([0, 10, 30, 60])
            tree.skeletons.rows = random.random.pick([0, 1, 2, 5, 100])
            tree.skeletons.keys = random.random.pick([0, 1, 3, 100])
            var path = TreePath.root
            for _ in 0..<random.random.pick([0, 1, 1, 2, 2, 3]) { path = try path.child(random.key()) }
            switch random.random.pick([0, 1, 2, 3]) {
            case 0 where !path.isRoot: try tree.apply(.setPriority(random.priority(), at: path))
            case 1:
                var values = JSONObject()
                for _ in 0..<4 where random.random.chance(3, in: 4) {
                    values[random.key().text] = random.random.chance(1, in: 3) ? .null : random.value(depth: 2)
                }
                try tree.apply(.update(values, at: path))
            default: try tree.apply(.set(random.value(depth: 3), at: path))
            }
            guard tree.indexRows == tree.expectedIndexRows(tree.catalog.definitions) else {
                Issue.record("seed \(seed), step \(step): at \(path)")
                return
            }
        }
    }

    /// Deleting by range is for large nodes: each range tombstone slows reads near it.
    @Test func manyLargeLeavesAreReplacedRowByRow() throws {
        var tree = try IndexedTree(rules: Self.chat)
        var values = JSONObject()
        for index in 0..<40 { values.append("k\(index)", .string(String(repeating: "x", count: 60_000))) }
        for path in ["/other", "/chats/c1/messages"] {
            try tree.update(path, values)
            for after: JSONValue in ["y", [".value": 1, ".priority": 2], ["z": 1], .null] {
                let update = JSONObject(uniqueMembers: values.members.map { .init($0.name, after) })
                let planner = WritePlanner(
                    codec: tree.codec, indexes: IndexDeltas(tree.catalog, codec: tree.indexCodec))
                let plan = try planner.plan(.update(update, at: TreePath(path)), reading: tree.rows, at: 1)
                let ranges = RangeCount()
                plan.rows.apply(to: ranges)
                #expect(ranges.count == 0, "\(path) \(after)")
                #expect(plan.changes.filter { $0.before == nil }.count >= 20)
            }
        }
    }

    private final class RangeCount: RowTarget {
        private(set) var count = 0

        func put(_: Span<UInt8>, _: Span<UInt8>) {}
        func delete(_: Span<UInt8>) {}
        func deleteRange(_: Span<UInt8>, _: Span<UInt8>) { count += 1 }
    }

    @Test func bytesOfIndexRowsSortLikePositions() throws {
        var data = RandomTree(random: SeededRandom(seed: 42))
        var sortKeys: [SortKey] = []
        for _ in 0..<600 {
            let json: JSONValue = data.random.chance(1, in: 10) ? ["x": 1] : data.primitive()
            sortKeys.append(SortKey(SortValue(try TreeNode(json: json)), data.key()))
        }
        let rows = sortKeys.map { (sortKey: $0, row: IndexKeyCodec.row([9], $0)) }
        for (left, right) in zip(rows, rows.dropFirst()) {
            let isComplete =
                IndexKeyCodec.isComplete(left.sortKey.value) || IndexKeyCodec.isComplete(right.sortKey.value)
            guard isComplete, left.sortKey != right.sortKey else { continue }
            #expect(
                (left.sortKey < right.sortKey) == left.row.lexicographicallyPrecedes(right.row),
                "\(left.sortKey) \(right.sortKey)")
        }
        for (sortKey, row) in rows where IndexKeyCodec.isComplete(sortKey.value) {
            #expect(IndexKeyCodec.decode(row.span, from: 1)?.sortKey == sortKey)
        }
        let broken: [UInt8] = [9, 0x40, 1]
        #expect(IndexKeyCodec.decode(broken.span, from: 1) == nil)
    }
}
