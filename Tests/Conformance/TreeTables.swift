import HatoModel
import HatoTree
import Testing

/// The tables about the tree: the result of a write, the value of a node, the order of keys and values.
struct TreeTables {
    @Test func everyWriteOfTheTableLeavesTheStateItSays() throws {
        for row in try Table("tree-writes").rows("writes") {
            let name = try row.requiredString("name")
            let tree = try TableTree(row.required("state"))
            let before = try tree.nodes.node(at: .root)
            if let reason = row["reason"]?.string {
                var found: String?
                do {
                    try tree.apply(mutation(row.required("write")), at: 1500)
                } catch let error as TreeError {
                    found = error.rpcError.reason
                } catch let error as ArgumentError {
                    found = error.reason
                }
                #expect(found == reason, "\(name)")
                #expect(try tree.nodes.node(at: .root) == before, "\(name)")
                continue
            }
            let plan = try tree.apply(mutation(row.required("write")), at: 1500)
            let result = try row.required("result")
            #expect(try tree.nodes.node(at: .root).export.text == TreeNode(json: result).export.text, "\(name)")
            if let paths = row["changedPaths"]?.array {
                #expect(plan.changes.map { .string($0.path.text) } == paths, "\(name)")
            }
        }
    }

    private func mutation(_ write: JSONValue) throws -> Mutation {
        if let path = write["set"]?.string { return .set(try write.required("value"), at: try TreePath(path)) }
        if let path = write["update"]?.string {
            return .update(try write.required("values").object ?? [:], at: try TreePath(path))
        }
        let key = try PushKey(write.requiredString("key"))
        return .push(
            try write.required("value"), at: try TreePath(write.requiredString("push")), key: key, isClientKey: true)
    }

    @Test func everyValueOfTheTableHasItsHash() throws {
        let table = try Table("tree-reading")
        for row in try table.rows("hashes") {
            let value = try row.required("value")
            let node = try TreeNode(json: value)
            #expect(SimpleHash.hash(node) == row["hash"]?.string, "\(value.text)")
            let stored = try TableTree(value).nodes.node(at: .root)
            #expect(SimpleHash.hash(stored) == row["hash"]?.string, "stored \(value.text)")
        }
        #expect(SimpleHash.hash(.leaf(.number(-0.0))) == table.json["minusZeroHash"]?.string)
    }

    @Test func everyNodeOfTheTableReadsAsItSays() throws {
        for row in try Table("tree-reading").rows("arrays") {
            let (stored, plain) = (try row.required("stored"), try row.required("plain"))
            #expect(try TreeNode(json: stored).plain.text == plain.text)
            let tree = try TableTree(stored)
            var writer = JSONWriter()
            try tree.nodes.write(.root, .plain, to: &writer)
            #expect(String(decoding: writer.bytes, as: UTF8.self) == plain.text)
        }
    }

    @Test func everyNodeOfTheTableIsExportedAsItSays() throws {
        for row in try Table("tree-reading").rows("exports") {
            let (stored, export) = (try row.required("stored"), try row.required("export"))
            #expect(try TreeNode(json: stored).export.text == export.text)
            let tree = try TableTree(stored)
            var writer = JSONWriter()
            try tree.nodes.write(.root, .export, to: &writer)
            #expect(String(decoding: writer.bytes, as: UTF8.self) == export.text)
            // A written export gives the same node again.
            #expect(try TreeNode(json: export) == TreeNode(json: stored), "\(export.text)")
        }
    }

    /// From text to text, through the tree; the printed text is read as the same number again.
    @Test func everyNumberOfTheTableIsReadAsItSays() throws {
        let table = try Table("tree-reading")
        for row in try table.rows("numbers") {
            let read = try row.requiredString("read")
            let number = try JSONParser.parse(read)
            for written in (row["written"]?.array ?? []).compactMap(\.string) + [read] {
                let parsed = try JSONParser.parse(written)
                let places: [(JSONValue, String)] = [
                    (parsed, read), (["a": parsed], "{\"a\":\(read)}"),
                    ([".value": "x", ".priority": parsed], "{\".value\":\"x\",\".priority\":\(read)}"),
                ]
                for (place, expected) in places {
                    let tree = try TableTree(place)
                    var writer = JSONWriter()
                    try tree.nodes.write(.root, .export, to: &writer)
                    #expect(String(decoding: writer.bytes, as: UTF8.self) == expected, "\(written)")
                }
                let stored = try TableTree(parsed).nodes.node(at: .root)
                #expect(try SimpleHash.hash(stored) == SimpleHash.hash(TreeNode(json: number)), "\(written)")
            }
        }
        for text in (try table.rows("noNumbers")).compactMap(\.string) {
            #expect(throws: JSONError.self, "\(text)") { try JSONParser.parse(text) }
        }
    }

    @Test func keysSortAsTheTableSays() throws {
        for list in try Table("tree-order").rows("keys") {
            let keys = (list.array ?? []).compactMap(\.string)
            #expect(keys.shuffled().sorted(by: KeyOrder.precedes) == keys)
            let codec = TreeKeyCodec(prefix: [1])
            let rows = try keys.map { codec.key(of: try TreePath(keys: [TreeKey($0)])) }
            #expect(rows.shuffled().sorted { $0.lexicographicallyPrecedes($1) } == rows)
        }
    }

    @Test func valuesSortAsTheTableSays() throws {
        let table = try Table("tree-order")
        for list in try table.rows("values") {
            let nodes = try (list.array ?? []).map { try TreeNode(json: $0) }
            #expect(nodes.shuffled().sorted { ValueOrder.compare($0, $1) < 0 } == nodes)
        }
        for pair in try table.rows("equalValues") {
            let nodes = try (pair.array ?? []).map { try TreeNode(json: $0) }
            #expect(ValueOrder.compare(nodes[0], nodes[1]) == 0, "\(pair.text)")
        }
    }

    @Test func childrenSortAsTheTableSays() throws {
        for row in try Table("tree-order").rows("children") {
            let child = try row["orderedBy"]?.string.map { try TreePath($0) }
            let children = try TreeNode(json: row.required("value")).children ?? TreeChildren(sorted: [])
            let sorted = children.shuffled().sorted { left, right in
                let order =
                    child.map { ValueOrder.compare(left.node.node(at: $0), right.node.node(at: $0)) }
                    ?? ValueOrder.compare(left.node.priority, right.node.priority)
                return order == 0 ? left.key < right.key : order < 0
            }
            #expect(sorted.map { .string($0.key.text) } == row["keys"]?.array)
        }
    }

    @Test func pushKeysBeginWithTheirTime() throws {
        for row in try Table("tree-order").rows("pushKeys") {
            let milliseconds = Int64(row["milliseconds"]?.number ?? -1)
            let key = PushKey(milliseconds: milliseconds, random: (0, 0))
            #expect(key.text == (try row.requiredString("prefix")) + "------------")
            #expect(key.milliseconds == milliseconds)
        }
    }
}
