import HatoModel
import Testing

/// The table of operations under rules, against a whole service: an allowed operation is done, a refused one changes
/// nothing.
@Suite(.timeLimit(.minutes(5)))
struct ServiceTables {
    @Test func everyOperationOfTheTableIsAllowedOrRefusedAsItSays() async throws {
        let table = try Table("rules-operations")
        try await TableService.with { service in
            for row in try table.rows("operations") {
                let name = try row.requiredString("name")
                let state = try row.required("state")
                try await prepare(service, rules: row.required("rules"), state: state)
                let (method, params) = (try row.requiredString("method"), try row.required("params").object ?? [:])
                var spoken = params
                if row["admin"] == nil { spoken["as"] = try row.required("as") }
                let answer = try await service.response(method, spoken)
                let isAllowed = row["allowed"]?.bool ?? false
                switch answer {
                case .success(let result):
                    #expect(isAllowed, "\(name): was not refused")
                    if let value = row["value"] { #expect(result["value"] == value, "\(name)") }
                case .failure(let error):
                    #expect(!isAllowed, "\(name): \(error.message)")
                    #expect(error.code == .permissionDenied, "\(name): \(error.message)")
                    #expect(error.data["path"]?.string?.hasPrefix("/") == true, "\(name)")
                }
                if let expected = isAllowed ? row["result"] : state {
                    let left = try await service.call("messages.get", ["path": "/", "export": true])
                    #expect(left["value"] == expected, "\(name)")
                }
                guard row["admin"] == nil else { continue }
                try await prepare(service, rules: row.required("rules"), state: state)
                let verdict = try await check(service, method, params, as: row.required("as"))
                #expect(verdict == isAllowed, "\(name), by messages.rules.check")
            }
        }
    }

    /// The hash of the table is the etag that a read returns, and the condition under which exactly one write succeeds.
    @Test func everyHashOfTheTableIsTheEtagOfItsValue() async throws {
        let rows = try Table("tree-reading").rows("hashes")
        try await TableService.with { service in
            for row in rows {
                let (value, hash) = (try row.required("value"), try row.requiredString("hash"))
                let etag = hash.isEmpty ? "null_etag" : hash
                _ = try await service.call("messages.set", ["path": "/a/b", "value": value])
                let read = try await service.call("messages.get", ["path": "/a/b", "etag": true])
                #expect(read["etag"] == .string(etag), "\(value.text)")
                let write: JSONObject = ["path": "/a/b", "value": ["next": true], "ifMatch": .string(etag)]
                let written = try await service.call("messages.set", write)["etag"]
                guard case .failure(let refused) = try await service.response("messages.set", write) else {
                    Issue.record("\(value.text): a former value was accepted as a condition")
                    continue
                }
                #expect(refused.reason == "etag_mismatch", "\(value.text)")
                #expect(refused.data["etag"] == written, "\(value.text)")
            }
        }
    }

    private func prepare(_ service: TableService, rules: JSONValue, state: JSONValue) async throws {
        _ = try await service.call("messages.rules.set", ["rules": .string(JSONValue.object(["rules": rules]).text)])
        _ = try await service.call("messages.set", ["path": "/", "value": state])
    }

    private func check(
        _ service: TableService, _ method: String, _ params: JSONObject, as speaker: JSONValue
    ) async throws -> Bool? {
        var asked: JSONObject = ["operation": .string(String(method.dropFirst("messages.".count))), "as": speaker]
        for name in ["path", "query"] { asked[name] = params[name] }
        asked["value"] = params["value"] ?? params["values"]
        return try await service.call("messages.rules.check", asked)["allowed"]?.bool
    }
}
