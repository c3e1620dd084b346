import HatoModel
import Testing

@testable import HatoFirebase

@Suite struct ValuePrintingTests {
    private static func pretty(_ text: String) -> String {
        String(decoding: ValuePrinting.pretty(Array(text.utf8)), as: UTF8.self)
    }

    @Test(arguments: [
        ("null", "null"), ("1.5", "1.5"), (#""a : {b,}""#, #""a : {b,}""#), ("{}", "{ }"), ("[]", "[ ]"),
        (#"{"a":1}"#, "{\n  \"a\" : 1\n}"), ("[1,2]", "[ 1, 2 ]"),
        (
            #"{"a":{"b":true,"c":"x"},"d":null}"#,
            "{\n  \"a\" : {\n    \"b\" : true,\n    \"c\" : \"x\"\n  },\n  \"d\" : null\n}"
        ),
        (#"{"a":[{"b":1},{"c":[2,3]}]}"#, "{\n  \"a\" : [ {\n    \"b\" : 1\n  }, {\n    \"c\" : [ 2, 3 ]\n  } ]\n}"),
        ("[[1],[{}]]", "[ [ 1 ], [ { } ] ]"), ("[{\"a\":1}]", "[ {\n  \"a\" : 1\n} ]"),
        (#"{"a\"{":"\\"}"#, "{\n  \"a\\\"{\" : \"\\\\\"\n}"), (#" { "a" : [ ] } "#, "{\n  \"a\" : [ ]\n}"),
    ])
    func prettyTextIsThatOfFirebase(text: String, pretty: String) {
        #expect(Self.pretty(text) == pretty)
    }

    @Test func brokenTextEndsPrinting() {
        for text in ["", "{", "}", "]]]", "{\"a\":", "\"", "\"\\", "[,", ":", "{\"a\" \"b\"}", "[}"] {
            _ = Self.pretty(text)
        }
    }

    @Test(arguments: [
        (#"{"b":1,"a":2}"#, #"{"a":2,"b":1}"#), (#"{"a":1,"b":2}"#, #"{"a":1,"b":2}"#), ("null", "null"), ("{}", "{}"),
        (#"{"z":{"b":1,"a":2},"10":[3,1],"9":0}"#, #"{"9":0,"10":[3,1],"z":{"b":1,"a":2}}"#),
        (#"{"~":1,"-1":2,"é":3,"00":4,"0":5}"#, #"{"-1":2,"0":5,"00":4,"~":1,"é":3}"#),
        (#"{"\"":1,"!":2}"#, #"{"!":2,"\"":1}"#), ("[2,1]", "[2,1]"), (#"{"b":1,"a"}"#, #"{"b":1,"a"}"#),
    ])
    func membersAreSortedByKey(text: String, sorted: String) {
        #expect(String(decoding: ValuePrinting.inKeyOrder(Array(text.utf8)), as: UTF8.self) == sorted)
    }

    // MARK: Plain form

    private static func plain(_ text: String) -> String? {
        let bytes = Array(text.utf8)
        return PlainForm.plain(bytes.span, in: 0..<bytes.count).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        ("1", "1"), ("null", "null"), (#""{""#, #""{""#), (#"{"a":1}"#, #"{"a":1}"#),
        (#"{".value":5,".priority":1}"#, "5"), (#"{".priority":1,".value":5}"#, "5"),
        (#"{".priority":3,"a":{".value":"x","" :2},"b":1}"#, #"{"a":"x","b":1}"#),
        (
            #"{".priority":3,"a":{".value":"x",".priority":"p"},"b":{".priority":1,"c":true}}"#,
            #"{"a":"x","b":{"c":true}}"#
        ),
        // §2.1
        (#"{"0":"a","1":"b"}"#, #"["a","b"]"#), (#"{"1":"a"}"#, #"[null,"a"]"#), (#"{"2":"a"}"#, #"{"2":"a"}"#),
        (#"{"1":"b","2":"c"}"#, #"[null,"b","c"]"#), (#"{"0":"a","3":"b"}"#, #"["a",null,null,"b"]"#),
        (#"{"0":0,"1":1,"2":2,"7":7}"#, "[0,1,2,null,null,null,null,7]"),
        (#"{"0":0,"5":5,"6":6}"#, #"{"0":0,"5":5,"6":6}"#),
        (#"{"01":1}"#, #"{"01":1}"#), (#"{"-1":1,"0":2}"#, #"{"-1":1,"0":2}"#), (#"{"0":1,"a":2}"#, #"{"0":1,"a":2}"#),
        (#"{"0":1,"00":2}"#, #"{"0":1,"00":2}"#), (#"{".priority":1,"0":{"0":{".value":1,".priority":2}}}"#, "[[1]]"),
        (#"{"a":{"0":{"b":1},"1":{"0":2}}}"#, #"{"a":[{"b":1},[2]]}"#), (#"{"99999999999":1}"#, #"{"99999999999":1}"#),
        (#"{"2147483648":1}"#, #"{"2147483648":1}"#), ("{}", "null"),
    ])
    func exportFormBecomesPlain(text: String, plain: String) {
        #expect(Self.plain(text) == plain)
    }

    @Test func brokenTextHasNoPlainForm() {
        for text in [
            "", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\".priority\":1}", "{\".value\":1", "{\"0\":1,}", "{1}",
        ] {
            #expect(Self.plain(text) == nil, "\(text)")
        }
        #expect(Self.plain(String(repeating: "{\"a\":", count: 100_000)) == nil)
        #expect(Self.plain(String(repeating: "{\"0\":", count: 40) + "1" + String(repeating: "}", count: 40)) == nil)
    }
}
