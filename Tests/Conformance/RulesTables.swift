import HatoModel
import HatoRules
import Testing

/// The table of rule expressions: caller, data, and whether the expression is refused, is an error, or is true or
/// false. Its facts were checked against the live service by the authors of targaryen (ISC licence). The row that
/// expects `query.orderByKey` names the order in its query, because a plain read has no order any more.
struct RulesTables {
    @Test func everyExpressionOfTheTableHasItsOutcome() throws {
        let table = try Table("rules-expressions")
        let users = try table.json.required("users")
        for row in try table.rows("expressions") {
            let rule = try row.requiredString("rule")
            let outcome = try row.required("outcome")
            #expect(try found(rule, row, users) == outcome, "\(rule)")
        }
    }

    /// The table has every recorded expression once, with its recorded outcome.
    @Test func tableHasEveryRecordedExpression() throws {
        let rows = try Table("rules-expressions").rows("expressions")
        func count(_ outcome: JSONValue) -> Int { rows.count { $0["outcome"] == outcome } }
        #expect(Set(rows.map(\.text)).count == 186)
        #expect(rows.count == 186)
        #expect((count(true), count(false), count("error"), count("invalid")) == (67, 19, 72, 28))
    }

    private func found(_ rule: String, _ row: JSONValue, _ users: JSONValue) throws -> JSONValue {
        let wildcards = row["wildcards"]?.object ?? [:]
        var document: JSONValue = .object([".read": .string(rule)])
        for wildcard in wildcards.members.reversed() { document = .object([wildcard.name: document]) }
        guard let rules = try? Rules.compile(JSONValue.object(["rules": document]).text) else { return "invalid" }
        let path = try TreePath(keys: wildcards.members.map { try TreeKey($0.value.string ?? "") })
        let user = try users[row.requiredString("user")]?.object
        let situation = RulesContext(
            auth: user.map { .members($0) } ?? .nobody, now: 1_700_000_000_000,
            before: try TreeNode(json: row["data"] ?? .null), query: try query(row["query"]))
        var recording = RulesRecording(trace: true)
        let verdict = try rules.authoriseRead(path, situation, recording: &recording)
        #expect(recording.trace?.count == 1, "\(rule)")
        return recording.trace?.first?.error == nil ? .bool(verdict.isAllowed) : "error"
    }

    private func query(_ json: JSONValue?) throws -> RulesQuery {
        var query = RulesQuery()
        query.orderByKey = json?["orderByKey"]?.bool ?? false
        query.orderByValue = json?["orderByValue"]?.bool ?? false
        query.orderByPriority = json?["orderByPriority"]?.bool ?? false
        query.orderByChild = json?["orderByChild"]?.string
        query.startAt = try leaf(json?["startAt"])
        query.endAt = try leaf(json?["endAt"])
        query.equalTo = try leaf(json?["equalTo"])
        query.limitToFirst = json?["limitToFirst"]?.number.map { Int($0) }
        query.limitToLast = json?["limitToLast"]?.number.map { Int($0) }
        return query
    }

    private func leaf(_ json: JSONValue?) throws -> TreeLeaf? { try json.flatMap { try TreeNode(json: $0).leaf } }
}
