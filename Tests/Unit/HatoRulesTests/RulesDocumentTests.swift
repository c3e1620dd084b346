import HatoModel
import HatoRules
import Testing

/// The syntax of a rules text, and the problems of an invalid one.
@Suite struct RulesDocumentTests {
    static func problems(_ text: String) -> [String] {
        do {
            _ = try Rules.compile(text)
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test(arguments: [
        (#"{"rules": {}}"#, #"{"rules":{}}"#),
        ("\u{FEFF}// first\n{ /* a */ \"rules\" : { } , } // end", #"{"rules":{}}"#),
        ("{\"rules\": {\".read\": \"auth\r\n\t!= null\"}}", #"{"rules":{".read":"auth\r\n\t!= null"}}"#),
        (#"{"rules": {".read": "'\u0022' != '\\' // \/"}}"#, #"{"rules":{".read":"'\"' != '\\' // /"}}"#),
        (
            #"{"rules": {"b": {".indexOn": ["x", ".value",]}, "a": {".read": true, ".write": "false"}, "鳩": {"$k": {}}}}"#,
            #"{"rules":{"b":{".indexOn":["x",".value"]},"a":{".read":true,".write":"false"},"鳩":{"$k":{}}}}"#
        ), (#"{"x": [1.5, null, -2e3]} /* no rules */"#, #"{"x":[1.5,null,-2000]}"#),
    ])
    func theDocumentIsWrittenAsJSON(_ text: String, _ json: String) throws {
        #expect(try RulesJSON.strict(text) == json)
        #expect(try RulesJSON.strict(json) == json)
    }

    @Test func whatIsNoDocumentHasNoJSON() {
        #expect(throws: RulesProblems.self) { try RulesJSON.strict("{\"rules\": {}") }
        let deep = String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000)
        #expect(throws: RulesProblems.self) { try RulesJSON.strict(deep) }
    }

    @Test(arguments: [
        "{\"rules\": {}}",
        "\u{FEFF}// first\n{ /* a */ \"rules\" /* b\n*/ : { // c\n } , } // end",
        "{\"rules\": {\".read\": true, \".write\": \"true\", \".indexOn\": [\"a\", \"b/c\", \".value\",], },}",
        "{\"rules\": {\".read\": \"auth\r\n != \t null\"}}",
        "{\"rules\": {\".read\": \"auth \\u0021= nul\\u006c\"}}",
        "{\"rules\": {\"鳩\": {\"$a\": {\"b c\": {\".read\": false}}}}}",
        "{\"rules\": {\"a\": {\"$a\": {}}, \"b\": {\"$a\": {\"$b\": {}}}, \"$b\": {\"$a\": {}}}}",
        "{\"rules\": {\"\u{E9}\": {}, \"e\u{301}\": {}}}",
        "{\"rules\": {\".read\": \"'// no comment' != null ? true : false\", \".validate\": false}}",
    ])
    func theDocumentIsReadLeniently(text: String) throws {
        #expect(Self.problems(text).isEmpty)
    }

    @Test(arguments: [
        ("", "1:1: Parse error."),
        ("[]", "1:1: Expected '{'."),
        ("{}", "1:1: Expected 'rules' property."),
        ("{\"rules\": {}} x", "1:15: Parse error."),
        ("{\"rules\": {}, \"more\": 1}", "1:15: Only 'rules' is allowed at the top of the document, not 'more'."),
        ("{\"rules\": {}, \"rules\": {}}", "1:15: Duplicate key 'rules'."),
        ("{\"rules\": 5}", "1:11: Expected '{'."),
        ("{\"rules\": {\"a\": 5}}", "1:17: Expected '{'."),
        ("{\"rules\": {\".foo\": 5}}", "1:20: Expected '{'."),
        ("{\"rules\": {,}}", "1:12: Unexpected ','."),
        ("{\"rules\": {\"a\": {},,}}", "1:20: Expected '\"'."),
        (
            "{\"rules\": {\"$a\": {\"b\": {\n  \"$a\": {}}}}}",
            "2:3: The wildcard '$a' is declared above already; a path has each name once."
        ),
        (
            "{\"rules\": {\"$a\": {\"$a\": {\".read\": \"$a == 'x'\"}}}}",
            "1:19: The wildcard '$a' is declared above already; a path has each name once."
        ),
        ("{\"rules\": {\".indexOn\": [,]}}", "1:25: Unexpected ','."),
        ("{\n  \"rules\": {\n    \".read\": \"tr\",\n  }\n}", "3:15: Unknown variable 'tr'."),
        ("{\"rules\": {\".read\": \"a\\\nb\"}}", "1:23: Invalid escape: '\\\n'"),
        (
            "{\"rules\": {\".read\": 5}}",
            "1:21: Invalid rule expression.  Expected 'true', 'false', or an expression string."
        ),
        (
            "{\"rules\": {\".write\": {}}}",
            "1:22: Invalid rule expression.  Expected 'true', 'false', or an expression string."
        ),
        (
            "{\"rules\": {\".indexOn\": 5}}",
            "1:24: Invalid indexOn expression. Must be either a string or an array of strings"
        ),
        (
            "{\"rules\": {\".indexOn\": [\"a\", 5]}}",
            "1:30: Invalid indexOn expression. Must be either a string or an array of strings"
        ),
        (
            "{\"rules\": {\".indexOn\": \"a#\"}}",
            "1:24: String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\""
        ),
        ("{\"rules\": {\"a/b\": {}}}", "1:12: String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\""),
        ("{\"rules\": {\"\": {}}}", "1:12: String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\""),
        ("{\"rules\": {\".x\": {}}}", "1:12: String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\""),
        ("{\"rules\": {\"$\": {}}}", "1:12: String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\""),
        ("{\"rules\": {\"$x\": {}, \"$y\": {}}}", "1:22: Cannot have multiple default rules ('$x' and '$y')."),
        ("{\"rules\": {\".read\": \"newData.exists()\"}}", "1:22: newData is invalid in .read expressions."),
        ("{\"rules\": {\".read\": \"auth.uid == $x\"}}", "1:34: Unknown variable '$x'."),
        ("{\"rules\": {\".read\": \"auth.uid = 'a'\"}}", "1:31: Rule expressions may not contain assignments."),
        ("{\"rules\": {\".read\": \"\"}}", "1:22: Parse error."),
        ("{\"rules\": {\".read\": \"auth !=\"}}", "1:29: Parse error."),
        ("{\"rules\": {\".read\": \"(true\"}}", "1:27: Parse error."),
        ("{\"rules\": {\".read\": \"true true\"}}", "1:27: Parse error."),
        ("{\"rules\": {\".read\": \"auth.uid.matches(/a\"}}", "1:39: unterminated regular expression literal"),
        (
            "{\"rules\": {\".read\": \"auth.uid.matches(/a/g)\"}}",
            "1:39: regular expressions do not support flags other than i"
        ),
        ("{\"rules\": {\".read\": \"1\"}}", "1:22: Expression must evaluate to a boolean."),
        ("{\"rules\": {\".read\": \"'true'\"}}", "1:22: Expression must evaluate to a boolean."),
    ])
    func problemsAreReportedWithTheirPosition(text: String, problem: String) {
        #expect(Self.problems(text) == [problem])
    }

    @Test func allProblemsAreReportedInTheOrderOfTheText() {
        let text = """
            {"rules": {
              ".read": "tr",
              "a.b": {".write": 5},
              "$x": {".validate": "5 == data", ".read": "foo == bar"},
              "$y": {},
            }}
            """
        #expect(
            Self.problems(text) == [
                "2:13: Unknown variable 'tr'.",
                "3:3: String can't contain \".\", \"#\", \"$\", \"/\", \"[\", or \"]\"",
                "3:21: Invalid rule expression.  Expected 'true', 'false', or an expression string.",
                "4:26: Invalid == expression: right operand is not a number, boolean, string, or null.",
                "4:46: Unknown variable 'foo'.",
                "4:53: Unknown variable 'bar'.",
                "5:3: Cannot have multiple default rules ('$x' and '$y').",
            ])
    }

    @Test func columnsCountScalarsAndEscapesAreOne() {
        #expect(Self.problems("{\"rules\": {\"鳩🕊\": {\".read\": \"\\u0061b\"}}}") == ["1:29: Unknown variable 'ab'."])
    }

    @Test func deepNestingIsRefusedNotCrashed() {
        let brackets = String(repeating: "{\"a\":", count: 10_000)
        #expect(Self.problems("{\"rules\": " + brackets).count == 1)
        let parentheses = String(repeating: "(", count: 10_000)
        #expect(Self.problems("{\"rules\": {\".read\": \"\(parentheses)\"}}").count == 1)
        let nots = String(repeating: "!", count: 10_000)
        #expect(Self.problems("{\"rules\": {\".read\": \"\(nots)true\"}}").count == 1)
        let members = "auth" + String(repeating: ".a", count: 100_000)
        #expect(Self.problems("{\"rules\": {\".read\": \"\(members) != null\"}}").count == 1)
        let sum = String(repeating: "1+", count: 100_000) + "1"
        #expect(Self.problems("{\"rules\": {\".read\": \"\(sum)\"}}").count == 1)
        #expect(
            Self.problems("{\"rules\": {}}" + String(repeating: " ", count: RulesLimits.documentBytesMax)).count == 1)
    }

    @Test func indexesAreReadFromTheRules() throws {
        let rules = try Rules.compile(
            """
            {"rules": {
              "chats": {
                "$chat": {"messages": {".indexOn": ["date", "author/name", "date", ".key", ".priority"]}},
                "special": {"scores": {".indexOn": ".value"}},
              },
              ".indexOn": "a",
            }}
            """)
        let chats = RulesIndex.Segment.key(try TreeKey("chats"))
        let special = try TreeKey("special")
        let messages = RulesIndex.Segment.key(try TreeKey("messages"))
        let wildcard = RulesIndex.Segment.wildcard("$chat", except: [special])
        #expect(
            rules.indexes == [
                RulesIndex(segments: [chats, wildcard, messages], target: .child(try TreePath("date"))),
                RulesIndex(segments: [chats, wildcard, messages], target: .child(try TreePath("author/name"))),
                RulesIndex(segments: [chats, .key(special), .key(try TreeKey("scores"))], target: .value),
                RulesIndex(segments: [], target: .child(try TreePath("a"))),
            ])
    }
}
