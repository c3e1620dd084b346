import HatoModel
import Testing

@Suite struct TreeQueryTests {
    @Test(arguments: [
        #"{}"#, #"{"orderBy":"$priority"}"#, #"{"orderBy":"date","limitToLast":1}"#,
        #"{"orderBy":"$key","equalTo":"k"}"#,
        #"{"orderBy":"$value","equalTo":null}"#, #"{"orderBy":"a/b","startAt":{"value":"x","key":"k"},"endBefore":5}"#,
        #"{"orderBy":"$priority","startAfter":{"value":1,"key":"k"},"endAt":"z","limitToFirst":3}"#,
        #"{"orderBy":"$key","startAfter":"a","endAt":"[MAX_NAME]"}"#,
    ])
    func queriesAreWrittenAsTheyWereRead(text: String) throws {
        let json = try JSONParser.parse(text)
        #expect(try TreeQuery(json).json == json)
        #expect(try TreeQuery(json).json == json)
    }

    @Test func equalQueriesAreEqualHoweverTheyAreWritten() throws {
        let equal = try TreeQuery(["orderBy": "a", "equalTo": 1])
        #expect(try TreeQuery(["orderBy": "/a/", "startAt": 1, "endAt": 1]) == equal)
        #expect(
            try TreeQuery(["orderBy": "a", "startAt": ["value": 1, "key": "[MIN_NAME]"], "endAt": ["value": 1]])
                == equal)
        #expect(try TreeQuery(["orderBy": "a", "equalTo": "1"]) != equal)
        #expect(TreeQuery(limit: .first(1)) == TreeQuery(order: .priority, limit: .first(1)))
    }

    /// A query with an order selects children; a leaf has none.
    @Test func onlyTheDefaultQueryIsTheNodeItself() throws {
        let byPriority = try TreeQuery(["orderBy": "$priority"])
        #expect(TreeQuery().isDefault && !byPriority.isDefault && byPriority != TreeQuery())
        #expect(try TreeQuery([:]).isDefault && TreeQuery(["orderBy": nil, "limitToFirst": nil]).isDefault)
        #expect(!TreeQuery(limit: .last(1)).isDefault)
        var limited = TreeQuery()
        limited.limit = .last(1)
        #expect(!limited.isDefault)
    }

    @Test func queryOfALeafOrNothingIsEmpty() throws {
        #expect(TreeQuery().select(from: .empty).isEmpty)
        #expect(TreeQuery().select(from: .leaf(.number(5))).isEmpty)
    }

    @Test func wrongQueryInARequestNamesTheParameter() throws {
        let params: JSONObject = ["path": "/a", "query": ["orderBy": "date", "limitToLast": 0]]
        #expect {
            try Messages.Get.decode(params)
        } throws: { error in
            guard let error = error as? RPCError else { return false }
            return error.code == .invalidArgument && error.reason == "limitToLast must be positive"
                && error.data["parameter"]?.string == "query"
        }
        let listen: JSONObject = ["path": "/a", "query": ["limitToLast": 5]]
        #expect {
            try Messages.Listen.decode(listen)
        } throws: { error in
            (error as? RPCError)?.code == .invalidArgument && (error as? RPCError)?.data["parameter"]?.string == "query"
        }
    }
}
