import HatoModel
import Testing

@Suite struct JSONCodingTests {
    struct Sample: Codable, Equatable {
        enum Kind: String, Codable, CaseIterable { case small, large }
        struct Nested: Codable, Equatable {
            var limit: Int
            var names: [String]?
        }
        struct Even: Codable, Equatable {
            var value: Int
            init(value: Int) { self.value = value }
            init(from decoder: any Decoder) throws {
                value = try decoder.singleValueContainer().decode(Int.self)
                guard value.isMultiple(of: 2) else { throw ArgumentError(reason: "ODD", "Must be even") }
            }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(value)
            }
        }

        var name: String
        var kind: Kind?
        var nested: Nested?
        var even: Even?
        var any: JSONValue?
        var table: [String: Int]?
        var version: UInt64?
    }

    private func error(of params: JSONObject) -> RPCError? {
        do {
            _ = try JSONCoding.decode(Sample.self, from: params)
            return nil
        } catch { return error }
    }

    @Test func aFullValueComesBack() throws {
        let sample = Sample(
            name: "a", kind: .large, nested: .init(limit: 3, names: ["x", "y"]), even: .init(value: 4),
            any: ["deep": [1, nil, true]], table: ["b": 2, "a": 1], version: 17)
        let json = try JSONCoding.encode(sample)
        #expect(json["nested"] == ["limit": 3, "names": ["x", "y"]])
        #expect(json["table"]?.object?.members.map(\.name) == ["a", "b"])
        #expect(try JSONCoding.decode(Sample.self, from: json.object ?? [:]) == sample)
    }

    @Test func missingParameterIsNamed() {
        let error = error(of: [:])
        #expect(error?.code == .invalidParams)
        #expect(error?.data["parameter"] == "name")
    }

    @Test func unknownParameterIsNamedAtAnyLevel() {
        #expect(error(of: ["name": "a", "nmae": 1])?.data["parameter"] == "nmae")
        let nested = error(of: ["name": "a", "nested": ["limit": 1, "limits": 2]])
        #expect(nested?.code == .invalidParams)
        #expect(nested?.data["parameter"] == "nested.limits")
    }

    @Test func wrongTypeIsNamedByItsPath() {
        #expect(error(of: ["name": 1])?.data["parameter"] == "name")
        #expect(
            error(of: ["name": "a", "nested": ["limit": 1, "names": ["x", 2]]])?.data["parameter"] == "nested.names.1")
        #expect(error(of: ["name": "a", "nested": 1])?.data["parameter"] == "nested")
    }

    @Test func unknownEnumCaseListsTheKnownOnes() {
        let error = error(of: ["name": "a", "kind": "huge"])
        #expect(error?.code == .invalidParams)
        #expect(error?.data["parameter"] == "kind")
        #expect(error?.message.contains("small, large") == true)
    }

    @Test func refusedContentIsAnInvalidArgument() {
        let error = error(of: ["name": "a", "even": 3])
        #expect(error?.code == .invalidArgument)
        #expect(error?.reason == "ODD")
        #expect(error?.data["parameter"] == "even")
    }

    @Test(arguments: [1.5, 9007199254740992, -9007199254740992, 1e300])
    func numbersThatAreNoExactIntegersAreRefused(number: Double) {
        #expect(error(of: ["name": "a", "version": .number(number)])?.data["parameter"] == "version")
    }

    @Test func integersOutsideTheTypeAreRefused() {
        #expect(error(of: ["name": "a", "version": -1])?.code == .invalidParams)
        #expect(error(of: ["name": "a", "version": 9007199254740991]) == nil)
    }

    @Test func unknownNamesOfResultsAreIgnored() throws {
        let result = try JSONCoding.decode(Sample.self, from: ["name": "a", "later": 1], unknown: .ignored)
        #expect(result.name == "a")
    }

    @Test func nullIsAbsentExceptWhereAnyValueIsMeant() throws {
        let sample = try JSONCoding.decode(Sample.self, from: ["name": "a", "kind": nil, "any": nil])
        #expect(sample.kind == nil)
        #expect(sample.any == .some(.null))
    }

    @Test func numbersThatJSONCannotSayAreRefused() {
        #expect(throws: JSONCodingError.self) { try JSONCoding.encode(["x": Double.nan]) }
        #expect(throws: JSONCodingError.self) { try JSONCoding.encode(["x": UInt64(1) << 53]) }
    }

    @Test func emptyIsTheEmptyObject() throws {
        #expect(try JSONCoding.encode(Empty()) == [:])
    }
}
