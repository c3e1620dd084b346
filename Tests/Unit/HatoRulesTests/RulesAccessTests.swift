import HatoModel
import HatoRules
import Testing

/// Who may do what, by tables: rules, who asks, where, and what the rules say.
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

    static let masuo = Caller.user(Caller.User(uid: "masuo"))
    static let katsuo = Caller.user(Caller.User(uid: "katsuo"))

    static func rules() throws -> Rules {
        try Rules.compile(chat.replacing("\"auth['uid'] === 'nobody'\"", with: "false"))
    }

    @Test(arguments: [
        ("/public", Caller.nobody, true), ("/public/x/y", .nobody, true), ("/", .nobody, false),
        ("/users/masuo", .nobody, false), ("/users/masuo", katsuo, true), ("/users/masuo/messages/m1", katsuo, true),
        ("/users", katsuo, false), ("/users/system", katsuo, false), ("/users/system/x", katsuo, false),
        ("/closed", masuo, false), ("/closed/inside", masuo, true), ("/closed/inside/deep", .nobody, true),
        ("/elsewhere", masuo, false), ("/", .administrator, true),
    ])
    func readsCascadeFromTheRootDown(path: String, caller: Caller, isAllowed: Bool) throws {
        #expect(try Self.rules().mayRead(TreePath(path), as: caller) == isAllowed)
    }

    @Test(arguments: [
        ("/public/x", Caller.nobody, false), ("/public/x", masuo, true),
        ("/users/masuo", masuo, true), ("/users/masuo/messages/m1/text", masuo, true), ("/users/masuo", katsuo, false),
        ("/users/masuo", .nobody, false), ("/users/system", masuo, false), ("/users", masuo, false),
        ("/users/masuo/.priority", masuo, true), ("/users/masuo/.priority", katsuo, false),
        ("/closed/inside", masuo, false), ("/", .administrator, true),
    ])
    func writesAskWriteRulesOnly(path: String, caller: Caller, isAllowed: Bool) throws {
        #expect(try Self.rules().mayWrite(TreePath(path), as: caller).isAllowed == isAllowed)
    }

    @Test func everyPathOfAnUpdateMustBeGrantedOnItsOwn() throws {
        let rules = try Self.rules()
        let own = try TreePath("/users/masuo/name")
        let other = try TreePath("/users/katsuo/name")
        #expect(rules.mayWrite([own, try TreePath("/public/a")], as: Self.masuo) == .allowed)
        #expect(rules.mayWrite([own, other], as: Self.masuo) == .denied(other))
    }

    @Test func newDatabasesDenyEverything() throws {
        #expect(!Rules.denyAll.mayRead(.root, as: Self.masuo))
        #expect(!Rules.denyAll.mayWrite(.root, as: Self.masuo).isAllowed)
        #expect(Rules.denyAll.mayRead(.root, as: .administrator))
        #expect(try Rules.compile(Rules.denyAll.text).indexes.isEmpty)
    }

    @Test func uidsAreComparedByteByByte() throws {
        let rules = try Rules.compile(#"{"rules": {"$uid": {".write": "$uid === auth.uid"}}}"#)
        let composed = Caller.user(Caller.User(uid: "caf\u{E9}"))
        #expect(rules.mayWrite(try TreePath("/caf\u{E9}"), as: composed).isAllowed)
        #expect(!rules.mayWrite(try TreePath("/cafe\u{301}"), as: composed).isAllowed)
    }

    @Test func innerWildcardsHideOuterOnesOfTheSameName() throws {
        let rules = try Rules.compile(#"{"rules": {"$x": {"$x": {".read": "auth.uid == $x"}}}}"#)
        #expect(rules.mayRead(try TreePath("/katsuo/masuo"), as: Self.masuo))
        #expect(!rules.mayRead(try TreePath("/masuo/katsuo"), as: Self.masuo))
    }

    @Test(arguments: [
        "auth != null", "auth !== null", "null != auth", "(auth) != (null)", "  auth\n!=\tnull ", "((null !== auth))",
    ])
    func signedInIsWrittenInManyWays(expression: String) throws {
        let rules = try Rules.compile("{\"rules\": {\".read\": \"\(expression)\"}}")
        #expect(rules.mayRead(.root, as: Self.masuo))
        #expect(!rules.mayRead(.root, as: .nobody))
    }
}
