import HatoModel
import Testing

/// The table of wrong calls: the mistakes that each method of messages and `session.forward` refuse, the texts of the
/// errors, and that a wrong call changes nothing.
@Suite(.timeLimit(.minutes(5)))
struct WrongCallTables {
    private static let declared: [any RPCRequest.Type] = Messages.methods + [Session.Forward.self]
    private static let methods = Dictionary(uniqueKeysWithValues: declared.map { ($0.method, $0) })

    /// A call with its expected error.
    struct Row {
        var method: String
        var params: JSONObject
        /// The name of the wrong parameter.
        var parameter: String?
        var code: Int
        var reason: String
        /// The whole message, or its part before the example.
        var message: String
        var isWhole: Bool
        var text: String { "\(method) \(JSONValue.object(params).text.prefix(300))" }
    }

    @Test func everyWrongCallIsRefusedInTheWordsOfTheTable() async throws {
        let table = try Table("wrong-calls")
        try await TableService.with { service in
            for call in try table.rows("before") {
                let params = try call.required("params").object ?? [:]
                _ = try await service.call(try call.requiredString("method"), params)
            }
            let before = try await service.everything()
            for row in try Self.rows(table) {
                guard case .failure(let error) = try await service.response(row.method, row.params) else {
                    Issue.record("\(row.text) was not refused")
                    continue
                }
                #expect(error.code.rawValue == row.code, "\(row.text): \(error.message)")
                #expect(error.reason == row.reason, "\(row.text): \(error.message)")
                #expect(error.data["parameter"]?.string == row.parameter, "\(row.text): \(error.message)")
                if row.isWhole {
                    #expect(error.message == row.message, "\(row.text)")
                } else {
                    #expect(error.message.hasPrefix(row.message), "\(row.text): \(error.message)")
                }
                if error.code == .invalidParams || error.code == .invalidArgument {
                    #expect(error.message.contains("e.g. "), "\(row.text): \(error.message)")
                }
            }
            #expect(try await service.everything() == before, "something of a wrong call was done")
        }
    }

    @Test func everyErrorOfTheTableIsDeclaredByItsMethod() throws {
        for row in try Self.rows(Table("wrong-calls")) {
            let error = RPCError(
                .init(rawValue: row.code), reason: row.reason, row.message,
                data: row.parameter.map { ["parameter": .string($0)] } ?? [:])
            #expect(Self.methods[row.method]?.declares(error) == true, "\(row.method): \(row.code) \(row.reason)")
        }
    }

    /// The table has every parameter, also those of future methods.
    @Test func everyParameterOfEveryMethodIsWrongSomewhere() throws {
        let rows = try Self.rows(Table("wrong-calls"))
        for method in Self.methods.keys.sorted() {
            let wrong = Set(rows.filter { $0.method == method }.compactMap { $0.parameter?.prefix { $0 != "." } })
            for name in try parameters(of: method) where !wrong.contains(name[...]) {
                Issue.record("the table has no wrong \(name) of \(method)")
            }
        }
    }

    /// The queries of their own table, in every method that has a query.
    @Test func everyWrongQueryIsRefusedWhereverItStands() async throws {
        let methods = try Self.methods.keys.sorted().filter { try parameters(of: $0).contains("query") }
        #expect(methods.contains("messages.get"))
        try await TableService.with { service in
            for row in try Table("tree-queries").rows("refused") {
                for method in methods {
                    var params = try Self.example(of: method)
                    params["path"] = "/list"
                    params["query"] = try row.required("query")
                    if params["operation"] != nil { params["operation"] = "get" }
                    guard case .failure(let error) = try await service.response(method, params) else {
                        Issue.record("\(method) took \(params)")
                        continue
                    }
                    #expect(error.code == .invalidArgument, "\(params)")
                    #expect(error.data["parameter"] == "query", "\(params)")
                    #expect(error.reason == row["reason"]?.string, "\(params)")
                    #expect(error.message.contains("e.g. "), "\(params)")
                }
            }
        }
    }

    /// `{"repeat": "x", "times": 3}` anywhere in a row stands for `"xxx"`, with `"list": true` for `["x", "x", "x"]`; a
    /// value that is not a string always becomes a list.
    private static func rows(_ table: Table) throws -> [Row] {
        let bases = table.json["bases"]?.object ?? [:]
        var rows: [Row] = []
        for row in try table.rows("calls") {
            rows.append(
                try self.row(
                    row, method: row.requiredString("method"), params: row.required("params").object ?? [:],
                    isWhole: true))
        }
        for row in try table.rows("everywhere") {
            let name = try row.requiredString("parameter")
            let only = row["methods"]?.array?.compactMap(\.string)
            let except = row["except"]?.array?.compactMap(\.string) ?? []
            for method in Self.methods.keys.sorted() where only?.contains(method) ?? !except.contains(method) {
                guard try only != nil || parameters(of: method).contains(name) else { continue }
                var params = try bases[method]?.object ?? example(of: method)
                params[name] = row["wrong"]
                rows.append(try self.row(row, method: method, params: params, isWhole: false))
            }
        }
        return rows
    }

    private static func row(
        _ row: JSONValue, method: String, params: JSONObject, isWhole: Bool
    ) throws -> Row {
        Row(
            method: method, params: grown(.object(params)).object ?? [:], parameter: row["parameter"]?.string,
            code: Int(try row.required("code").number ?? 0), reason: try row.requiredString("reason"),
            message: try row.requiredString("message"), isWhole: isWhole)
    }

    private static func grown(_ value: JSONValue) -> JSONValue {
        switch value {
        case .object(let object):
            if let unit = object["repeat"], let times = object["times"]?.number {
                if let text = unit.string, object["list"] == nil {
                    return .string(String(repeating: text, count: Int(times)))
                }
                return .array(Array(repeating: unit, count: Int(times)))
            }
            return .object(
                JSONObject(uniqueMembers: object.members.map { JSONObject.Member($0.name, grown($0.value)) }))
        case .array(let elements): return .array(elements.map(grown))
        case .null, .bool, .number, .string: return value
        }
    }

    private static func example(of method: String) throws -> JSONObject {
        func params<Request: RPCRequest>(_: Request.Type) throws -> JSONObject {
            Request.example.request.members
        }
        guard let request = methods[method] else { throw TableError(missing: method) }
        return try params(request)
    }

    private static func parameters(of method: String) throws -> [String] {
        func names<Request: RPCRequest>(_: Request.Type) throws -> [String] {
            Request.schema["properties"]?.object?.members.map(\.name) ?? []
        }
        guard let request = methods[method] else { throw TableError(missing: method) }
        return try names(request)
    }

    private func parameters(of method: String) throws -> [String] { try Self.parameters(of: method) }
}
