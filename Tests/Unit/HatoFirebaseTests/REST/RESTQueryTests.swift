import HatoModel
import Testing

@testable import HatoFirebase

@Suite struct RESTQueryTests {
    private static func query(_ text: String) throws(RESTError) -> TreeQuery? {
        try RESTQuery.query(QueryParameters(text[...]))
    }

    /// Characters that stand for themselves here; the parameters of a request are percent-encoded.
    @Test(
        arguments: [
            (#"orderBy="date"&limitToLast=1"#, #"{"orderBy":"date","limitToLast":1}"#),
            (#"orderBy="a/b"&limitToFirst=1000000"#, #"{"orderBy":"a/b","limitToFirst":1000000}"#),
            (#"orderBy="$key""#, #"{"orderBy":"$key"}"#),
            (#"orderBy="$value"&equalTo=null"#, #"{"orderBy":"$value","equalTo":null}"#),
            (#"orderBy="$priority"&startAt=1"#, #"{"orderBy":"$priority","startAt":1}"#),
            (#"orderBy="$key"&startAt="b"&endAt="c""#, #"{"orderBy":"$key","startAt":"b","endAt":"c"}"#),
            (#"orderBy="n"&startAt=3,"k""#, #"{"orderBy":"n","startAt":{"value":3,"key":"k"}}"#),
            (#"orderBy="n"&startAfter=3&endBefore="x""#, #"{"orderBy":"n","startAfter":3,"endBefore":"x"}"#),
            (#"orderBy="n"&startAt=" a,\"b\" ""#, #"{"orderBy":"n","startAt":" a,\"b\" "}"#),
            (#"orderBy="n"&equalTo=true"#, #"{"orderBy":"n","equalTo":true}"#),
            (#"orderBy="n"&equalTo=1e3"#, #"{"orderBy":"n","equalTo":1000}"#),
            (#"orderBy="n"&equalTo=99999999999999999999"#, #"{"orderBy":"n","equalTo":100000000000000000000}"#),
            (#"orderBy="n"&startAt=5&endAt=5"#, #"{"orderBy":"n","equalTo":5}"#),
            (#"orderBy="あ"&equalTo="é😀""#, #"{"orderBy":"あ","equalTo":"é😀"}"#),
            (#"orderBy="n"&limitToLast=1e2"#, #"{"orderBy":"n","limitToLast":100}"#),
            (#"orderBy="$key"&endAt="\#(String(repeating: "z", count: 786))""#, nil),
        ] as [(String, String?)])
    func queryIsThatOfTheModel(text: String, json: String?) throws {
        let query = try #require(try Self.query(text))
        if let json { #expect(String(decoding: query.json.encoded, as: UTF8.self) == json) }
        #expect(try TreeQuery(query.json) == query)
    }

    private static let noOrder = "orderBy must be defined when other query parameters are defined"
    private static let wrongOrder = "orderBy must be a valid JSON encoded path"
    private static let noPrimitive = "Constraint index field must be a JSON primitive"

    @Test(arguments: [
        ("limitToLast=1", noOrder), ("startAt=1", noOrder), ("equalTo=null", noOrder), ("limitToLast=abc", noOrder),
        ("orderBy=date", wrongOrder), ("orderBy=", wrongOrder), ("orderBy", wrongOrder),
        (#"orderBy="date"#, wrongOrder),
        ("orderBy='date'", wrongOrder), ("orderBy=null", wrongOrder), ("orderBy=1", wrongOrder),
        ("orderBy=[]", wrongOrder),
        ("orderBy={}", wrongOrder), (#"orderBy="""#, wrongOrder), (#"orderBy="/""#, wrongOrder),
        (#"orderBy="$foo""#, wrongOrder), (#"orderBy="a.b""#, wrongOrder), (#"orderBy=".priority""#, wrongOrder),
        (#"orderBy="a[0]""#, wrongOrder), (#"orderBy="a" "b""#, wrongOrder), (#"orderBy="\u0000""#, wrongOrder),
        (#"orderBy="\ud800""#, wrongOrder), ("orderBy=\"a\u{0}\"", wrongOrder), ("orderBy=NaN", wrongOrder),
        (#"orderBy="\#(String(repeating: "k", count: 1_000))""#, wrongOrder),
        (#"orderBy="n"&startAt=abc"#, noPrimitive), (#"orderBy="n"&startAt="#, noPrimitive),
        (#"orderBy="n"&startAt=NaN"#, noPrimitive), (#"orderBy="n"&startAt=Infinity"#, noPrimitive),
        (#"orderBy="n"&startAt=1e400"#, noPrimitive), (#"orderBy="n"&startAt=[1]"#, noPrimitive),
        (#"orderBy="n"&startAt={"value":1}"#, noPrimitive), (#"orderBy="n"&startAt=1,"a","b""#, noPrimitive),
        (#"orderBy="n"&startAt=1],[2"#, noPrimitive), (#"orderBy="n"&startAt=]"#, noPrimitive),
        (#"orderBy="n"&startAt=01"#, noPrimitive), (#"orderBy="n"&startAt='a'"#, noPrimitive),
        (#"orderBy="n"&startAt=1,2"#, "Constraint key must be a string"),
        (
            #"orderBy="n"&equalTo=1&startAt=1"#,
            "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore"
        ),
        (
            #"orderBy="n"&equalTo=1&endBefore=1"#,
            "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore"
        ),
        (#"orderBy="n"&startAt=1&startAfter=1"#, "Only one of startAt and startAfter may be specified"),
        (#"orderBy="n"&endAt=1&endBefore=1"#, "Only one of endAt and endBefore may be specified"),
        (#"orderBy="$key"&startAt=1"#, "Provided key index type is invalid, must be string"),
        (#"orderBy="$key"&equalTo=null"#, "Provided key index type is invalid, must be string"),
        (#"orderBy="n"&limitToFirst=abc"#, "limitToFirst must be an integer"),
        (#"orderBy="n"&limitToLast="5""#, "limitToLast must be an integer"),
        (#"orderBy="n"&limitToLast=1.5"#, "limitToLast must be an integer"),
        (#"orderBy="n"&limitToLast="#, "limitToLast must be an integer"),
        (#"orderBy="n"&limitToLast=null"#, "limitToLast must be an integer"),
        (#"orderBy="n"&limitToLast=NaN"#, "limitToLast must be an integer"),
        (#"orderBy="n"&limitToFirst=0"#, "limitToFirst must be positive"),
        (#"orderBy="n"&limitToLast=0"#, "limitToLast must be positive"),
        (#"orderBy="n"&limitToLast=-1"#, "limitToLast must be positive"),
        (#"orderBy="n"&limitToLast=-99999999999999999999"#, "limitToLast must be positive"),
        (#"orderBy="n"&limitToLast=1000001"#, "limitToLast must be at most 1000000"),
        (#"orderBy="n"&limitToLast=1e300"#, "limitToLast must be at most 1000000"),
        (#"orderBy="n"&limitToFirst=1&limitToLast=1"#, "Only one of limitToFirst and limitToLast may be specified"),
    ])
    func wrongQueryHasTheTextOfFirebase(text: String, error: String) {
        #expect(throws: RESTError(400, error)) { try Self.query(text) }
    }

    @Test func noParameterIsNoQuery() throws {
        #expect(try Self.query("print=pretty") == nil)
        #expect(try Self.query("") == nil)
    }
}
