import HatoModel
import HatoRules
import Testing

/// Access by tables: rules, caller, path, and verdict.
@Suite struct RulesAccessTests {
    static let chat = """
        {
          // what a chat begins with
          "rules": {
            "public": {".read": true, ".write": "auth != null"},
            "users": {
              "$uid": {
                ".read": "auth !== null",
                ".write": " ( auth.uid == $uid ) ",
                "messages": {".indexOn": "date"},
              },
              "system": {".read": "auth['uid'] === 'nobody'" /* replaced below */},
            },
            "closed": {".read": "false", "inside": {".read": "true"}},
          },
        }
        """

    static let masuo = Asking(auth: .user("masuo"))
    static let katsuo = Asking(auth: .user("katsuo"))
    static let nobody = Asking()

    static func rules() throws -> Rules {
        try Rules.compile(chat.replacing("\"auth['uid'] === 'nobody'\"", with: "false"))
    }

    @Test(arguments: [
        ("/public", nobody, true), ("/public/x/y", nobody, true), ("/", nobody, false),
        ("/users/masuo", nobody, false), ("/users/masuo", katsuo, true), ("/users/masuo/messages/m1", katsuo, true),
        ("/users", katsuo, false), ("/users/system", katsuo, false), ("/users/system/x", katsuo, false),
        ("/closed", masuo, false), ("/closed/inside", masuo, true), ("/closed/inside/deep", nobody, true),
        ("/elsewhere", masuo, false),
    ])
    func readsCascadeFromTheRootDown(path: String, asking: Asking, isAllowed: Bool) throws {
        #expect(try asking.mayRead(Self.rules(), path) == isAllowed)
    }

    @Test(arguments: [
        ("/public/x", nobody, false), ("/public/x", masuo, true),
        ("/users/masuo", masuo, true), ("/users/masuo/messages/m1/text", masuo, true), ("/users/masuo", katsuo, false),
        ("/users/masuo", nobody, false), ("/users/system", masuo, false), ("/users", masuo, false),
        ("/users/masuo/.priority", masuo, true), ("/users/masuo/.priority", katsuo, false),
        ("/closed/inside", masuo, false),
    ])
    func writesEvaluateWriteRulesOnly(path: String, asking: Asking, isAllowed: Bool) throws {
        #expect(try asking.mayWrite(Self.rules(), path, 1) == isAllowed)
    }

    @Test func everyPathOfAnUpdateMustBeGrantedOnItsOwn() throws {
        let rules = try Self.rules()
        let (own, other) = ("/users/masuo/name", "/users/katsuo/name")
        #expect(try Self.masuo.authorise(rules, [(own, "a"), ("/public/a", 1)]) == .allowed)
        #expect(
            try Self.masuo.authorise(rules, [(own, "a"), (other, "b")])
                == .denied(RulesDenial(path: try TreePath(other))))
    }

    @Test func newDatabasesDenyEverything() throws {
        #expect(try !Self.masuo.mayRead(.denyAll, "/"))
        #expect(try !Self.masuo.mayWrite(.denyAll, "/", 1))
        #expect(try Rules.compile(Rules.denyAll.text).indexes.isEmpty)
    }

    @Test func uidsAreComparedByteByByte() throws {
        let rules = try Rules.compile(#"{"rules": {"$uid": {".write": "$uid === auth.uid"}}}"#)
        let composed = Asking(auth: .user("caf\u{E9}"))
        #expect(try composed.mayWrite(rules, "/caf\u{E9}", 1))
        #expect(try !composed.mayWrite(rules, "/cafe\u{301}", 1))
    }

    /// Such rules are refused when they are set; a database that has them from an older version opens with them.
    @Test func innerWildcardsOfStoredRulesHideOuterOnesOfTheSameName() throws {
        let text = #"{"rules": {"$x": {"$x": {".read": "auth.uid == $x"}}}}"#
        #expect(throws: RulesProblems.self) { try Rules.compile(text) }
        let rules = try Rules.compile(stored: text)
        #expect(try Self.masuo.mayRead(rules, "/katsuo/masuo"))
        #expect(try !Self.masuo.mayRead(rules, "/masuo/katsuo"))
    }

    /// Found by random inputs (`FuzzChecks.mutatedExpression`, seed 1, round 210663): a snapshot beside a value.
    @Test(arguments: [
        "(true ? data.child('a') : 1) == null", "(true ? data : 1) == null", "(true ? query : 1) == null",
        "(true ? data.parent().child('a').val : '') < (data.val())", "1 != (auth == null ? root : 'a')",
        "(true ? (true ? data.parent() : data) : null) != 'a'",
    ])
    func snapshotsAsValuesOfStoredRulesGoWrong(expression: String) throws {
        let text = "{\"rules\": {\".read\": \"\(expression)\"}}"
        #expect(throws: RulesProblems.self) { try Rules.compile(text) }
        #expect(try !Self.nobody.mayRead(Rules.compile(stored: text), "/"))
    }

    @Test(arguments: [
        "auth != null", "auth !== null", "null != auth", "(auth) != (null)", "  auth\n!=\tnull ", "((null !== auth))",
    ])
    func signedInIsWrittenInManyWays(expression: String) throws {
        let rules = try Rules.compile("{\"rules\": {\".read\": \"\(expression)\"}}")
        #expect(try Self.masuo.mayRead(rules, "/"))
        #expect(try !Self.nobody.mayRead(rules, "/"))
    }
}
