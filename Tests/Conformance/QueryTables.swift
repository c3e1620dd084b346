import HatoModel
import HatoRules
import HatoTree
import Testing

/// The tables about queries: the children they select, their order, and the errors of wrong queries.
struct QueryTables {
    @Test func everyQueryOfTheTableSelectsWhatItSays() throws {
        try run(Table("tree-queries").json)
    }

    @Test func everyOrderOfPrioritiesIsThatOfTheTable() throws {
        try run(Table("tree-queries").json.required("priorities"))
    }

    @Test(arguments: ["leaf", "nothing", "ownPriority"])
    func everyOtherNodeOfTheTableIsAskedAsItSays(name: String) throws {
        try run(Table("tree-queries").json.required(name))
    }

    private func run(_ table: JSONValue) throws {
        let data = try table.required("data")
        let node = try TreeNode(json: data)
        let path = try TreePath("/list")
        let world = try QueryWorld(data, at: path, indexOn: ["v", "v/deep", ".value"])
        for row in try Table.rows(table, "queries") {
            let query = try TreeQuery(row.required("query"))
            let keys = row["keys"]?.array?.compactMap(\.string) ?? []
            #expect(query.select(from: node).map(\.key.text) == keys, "\(query.json.text), over values")
            let indexed = try QueryPlan.indexed(query, at: path, in: world.catalog)
            for plan in [indexed, .everyChild] {
                let found = try world.runner.sortKeys(query, at: path, by: plan)
                #expect(found.map(\.key.text) == keys, "\(query.json.text), by \(plan)")
                var shallow = JSONWriter()
                try world.runner.writeShallow(found, to: &shallow)
                let members = try JSONParser.parse(shallow.bytes.span).object?.members
                #expect(members?.map(\.name) == keys, "\(query.json.text), the keys alone")
            }
            #expect(try TreeQuery(query.json) == query, "\(query.json.text), written and read again")
        }
    }

    @Test func everyWrongQueryOfTheTableIsRefusedWithItsReason() throws {
        for row in try Table("tree-queries").rows("refused") {
            let query = try row.required("query")
            var found: String?
            do {
                _ = try TreeQuery(query)
            } catch {
                found = error.reason
                #expect(error.message.contains("e.g. "), "\(query.text) shows no example of a right value")
            }
            #expect(try found == row.requiredString("reason"), "\(query.text)")
        }
    }
}

/// A collection with its indexes.
private struct QueryWorld {
    var catalog = IndexCatalog()
    let runner: QueryRunner

    init(_ data: JSONValue, at path: TreePath, indexOn: [String]) throws {
        let targets = indexOn.map { "\"\($0)\"" }.joined(separator: ",")
        let rules = try Rules.compile("{\"rules\": {\"list\": {\".indexOn\": [\(targets)]}}}")
        #expect(catalog.adopt(rules.indexes).isEmpty)
        let table = try TableTree(.null)
        let indexCodec = IndexKeyCodec(prefix: Array("index".utf8))
        let planner = WritePlanner(codec: table.codec, indexes: IndexDeltas(catalog, codec: indexCodec))
        try table.apply(.set(data, at: path), planner, at: 0)
        while let (definition, cursor) = catalog.building {
            let builder = IndexBuilder(definition, reader: table, codec: table.codec, indexCodec: indexCodec)
            let page = try builder.page(after: cursor, childrenMax: 5)
            page.rows.apply(to: table)
            catalog.pageApplied(page)
        }
        runner = QueryRunner(table, codec: table.codec, indexCodec: indexCodec)
    }
}

extension Table {
    fileprivate static func rows(_ json: JSONValue, _ name: String) throws -> [JSONValue] {
        guard let rows = json[name]?.array, !rows.isEmpty else { throw TableError(missing: name) }
        return rows
    }
}
