import HatoModel
import HatoRules
import Testing

/// Results of operators, variables and methods (spec §9.3-§9.5), row by row.
@Suite struct RulesOperatorTests {
    static let data: JSONValue = [
        "x": ["y": ["name": "Masuo", "age": 28, "isAdult": true, "list": ["a", "b"], "empty": ""]],
        "n": 5, "s": "five", "t": true, "p": [".value": "leaf", ".priority": 3], "q": [".priority": "high", "a": 1],
    ]
    static let asking = Asking(
        auth: .user(
            "masuo",
            [
                "email": "m@example.com", "admin": true, "level": 3, "roles": ["cook", "driver"],
                "firebase": ["sign_in_provider": "password", "identities": ["a.com": ["m1"]]],
            ]),
        data: data)

    @Test(arguments: [
        // Precedence and associativity.
        "1 + 2 * 3 == 7", "(1 + 2) * 3 == 9", "10 - 3 - 2 == 5", "12 / 3 / 2 == 2", "7 % 4 % 2 == 1", "-2 * -3 == 6",
        "1 + 1 == 2 && 2 > 1", "true || false && false", "!false && true", "false ? false : true ? true : false",
        "1 < 2 == true", "2 - -1 == 3", "!!true", "5 > 3 != false",
        // Equality is strict.
        "!(5 == '5')", "!(1 == true)", "!(0 == null)", "!('' == null)", "null == null", "'a' === 'a'", "1 !== '1'",
        "root.child('nothing').val() == null", "root.child('x').val() != null",
        // Order.
        "'a' < 'b'", "'B' < 'a'", "'a' < 'aa'", "2 < 10", "'10' < '2'", "'\u{FFFF}' > '😀'", "3 >= 3",
        "'b' >= 'a'",
        // Sums.
        "'a' + 'b' == 'ab'", "'a' + 1 == 'a1'", "1.5 + 'a' == '1.5a'", "1 + 2 + 'a' == '3a'", "'' + 3.0 == '3'",
        "'' + -0.25 == '-0.25'", "1/0 + '' == 'NaN'", "root.child('n').val() + 1 == 6",
        "root.child('s').val() + 1 == 'five1'",
        // Division by zero yields NaN.
        "!(1/0 > 1)", "!(1/0 < 1)", "!(1/0 == 1/0)", "1/0 != 1/0", "!(5 % 0 == 0)", "-7 % 3 == -1", "5.5 % 2 == 1.5",
        // auth.
        "auth != null", "auth.uid == 'masuo'", "auth.token.email == 'm@example.com'", "auth.token['admin'] === true",
        "auth.provider == 'password'", "auth.token.firebase.sign_in_provider == 'password'",
        "auth.token.firebase.identities['a.com'][0] == 'm1'", "auth.token.roles['1'] == 'driver'",
        "auth.token.roles[2] == null", "auth.token.nothing == null", "auth.token.nothing.deeper == null",
        "auth.uid.deeper == null", "auth.email == null", "auth.token.level + 1 == 4", "auth.uid.length == 5",
        "auth.token != null", "auth.token.roles != null", "auth.token.roles != 'cook'",
        "auth.token['e' + 'mail'] != null",
        // now and wildcards.
        "now == 1700000000000", "$a == 'x' && $b == 'y'", "$a.length == 1", "$a + '/' + $b == 'x/y'",
        // Snapshots.
        "data.exists()", "data.child('name').val() == 'Masuo'", "data.child('/name/').exists()",
        "data.parent().child($b).exists()", "data.parent().parent().child('n').val() == 5",
        "data.child('list/0').val() == 'a'", "root.child('x/y/age').isNumber()", "root.child('x').child('y').exists()",
        "data.child('name').isString()", "data.child('isAdult').isBoolean()", "!data.isString()", "!data.isNumber()",
        "!root.child('x/y/no').isBoolean()", "data.hasChild('list/1')", "!data.hasChild('list/2')",
        "data.hasChildren()",
        "!data.child('name').hasChildren()", "data.hasChildren(['name', 'list/0'])",
        "!data.hasChildren(['name', 'no'])",
        "data.hasChildren([])", "data.child('name').hasChildren([])", "data.child('no').hasChildren([])",
        "root.child('p').getPriority() == 3", "root.child('q').getPriority() == 'high'", "data.getPriority() == null",
        "root.child('p').val() == 'leaf'", "data.child('').exists()", "data.child('name').child('a').val() == null",
        "!root.child('bob@ex.com').exists()", "!root.hasChild('a#b')", "!root.hasChildren(['$x'])",
        "root.child('a.b').parent().child('n').exists()", "!root.child('a[0]/b').exists()",
        "root.child($a).child($b).child('name').exists()", "(data.exists() ? data : root).child('name').exists()",
        "(data.exists() ? data.child('list') : root).parent().child('name').exists()",
        // Strings.
        "'Sazae-san'.contains('ae-s')", "!'abc'.contains('ac')", "'abc'.contains('')", "'abc'.beginsWith('ab')",
        "'abc'.endsWith('bc')", "!'abc'.endsWith('abcd')", "'aXbXc'.replace('X', '--') == 'a--b--c'",
        "'a.b.c'.replace('.', '') == 'abc'", "'aaa'.replace('aa', 'b') == 'ba'", "'abc'.replace('x', 'y') == 'abc'",
        "'Straße'.toUpperCase() == 'STRASSE'", "'ÀB'.toLowerCase() == 'àb'", "'日本'.length == 2", "'😀'.length == 2",
        "''.length == 0", "data.child('empty').val().length == 0", "'a'.toUpperCase().length == 1",
        "data.child('name').val().matches(/^[A-Z][a-z]+$/)", "$a.matches(/X/i)", "!$a.matches(/X/)",
        // The empty text occurs between characters, before the first and after the last; a surrogate pair is not split.
        "'abc'.replace('', '-') == '-a-b-c-'", "''.replace('', 'x') == 'x'", "'a'.replace('', '') == 'a'",
        "'a😀'.replace('', '.') == '.a.😀.'", "'e\u{301}'.replace('', '.') == '.e.\u{301}.'",
        // A surrogate pair that is written as escapes is one character.
        "'\\uD83D\\uDE00' == '😀'", "'\\ud83d\\ude00'.length == 2", "'a\\uD83D\\uDE00b'.contains('😀')",
        "'😀'.matches(/^\\uD83D\\uDE00$/)", "'😁'.matches(/^[\\uD83D\\uDE00-\\uD83D\\uDE02]$/)",
        "'\\uFFFF' > '\\uD83D\\uDE00'",
        // A read without a query.
        "!query.orderByKey && !query.orderByValue && !query.orderByPriority", "query.orderByChild == null",
        "query.startAt == null && query.endAt == null && query.equalTo == null", "query.limitToFirst == null",
        "query.limitToLast == null",
    ])
    func expressionIsTrue(expression: String) throws {
        #expect(try Self.asking.outcome(of: expression, writing: ["name": "Katsuo"]) == .true, "\(expression)")
    }

    @Test(arguments: [
        ("auth.token.nothing < 1", "order"), ("'a' < 1", "order"), ("data.val() > 0", "order"),
        ("root.child('t').val() >= 1", "order"), ("auth.token.nothing + 1 == 1", "added"),
        ("root.child('t').val() + 'a' == 'truea'", "added"), ("root.child('s').val() - 1 == 4", "number"),
        ("-auth.uid == 1", "number"), ("auth.token.nothing * 2 == 0", "number"),
        ("auth.token.nothing.length == 0", "method"), ("auth.token.level.contains('3')", "method"),
        ("root.child('n').val().length == 1", "method"), ("data.val().matches(/a/)", "method"),
        ("'a'.contains(auth.token.nothing)", "argument"), ("data.child(auth.token.level).exists()", "argument"),
        ("data.hasChild(auth.token.nothing)", "argument"), ("data.hasChildren([auth.token.nothing])", "argument"),
        ("data.hasChildren(['no', auth.token.nothing])", "argument"), ("auth.token[auth.nothing] == null", "argument"),
        ("'a'.replace(auth.token.level, 'b') == 'a'", "argument"), ("root.parent().exists()", "parent"),
        ("data.parent().parent().parent().exists()", "parent"), ("data.child('..').exists()", "'..'"),
        ("data.child('a/./b').exists()", "'..'"), ("data.child(auth.token.nothing + '/..').exists()", "added"),
        ("data.child($a + '/..').exists()", "'..'"), ("root.hasChild('../a')", "'..'"),
        // An error anywhere in what is evaluated ends the whole expression.
        ("(auth.token.nothing < 1) || true", "order"), ("!(auth.token.nothing < 1)", "order"),
        ("auth.token.nothing.length > 1 ? false : true", "method"), ("true == (auth.token.nothing < 1)", "order"),
    ])
    func expressionGoesWrong(expression: String, reason: String) throws {
        guard case .error(let message) = try Self.asking.outcome(of: expression) else {
            Issue.record("\(expression) did not go wrong")
            return
        }
        #expect(message.contains(reason), "\(expression): \(message)")
    }

    @Test(arguments: [
        "true || (auth.token.nothing < 1)", "!(false && auth.token.nothing < 1)",
        "true ? true : auth.token.nothing < 1", "auth == null ? auth.uid.length > 1 : true",
        "!(auth.token.nothing != null && auth.token.nothing.length < 9)",
    ])
    func unevaluatedPartsDoNotFail(expression: String) throws {
        #expect(try Self.asking.outcome(of: expression) == .true, "\(expression)")
    }

    @Test(arguments: ["auth == null", "auth.uid == null", "auth.token.a.b == null", "auth.provider == null"])
    func membersWithoutAUserAreNull(expression: String) throws {
        #expect(try Asking().outcome(of: expression) == .true)
    }

    @Test(arguments: [
        ("newData.child('name').val() == 'Katsuo' && data.child('name').val() == 'Masuo'", "/x/y"),
        ("newData.val() != null && newData.hasChildren()", "/x/y"),
        ("newData.parent().parent().child('n').val() == 5", "/x/y"),
        ("root.child('x/y/name').val() == 'Masuo'", "/x/y"), ("newData.isString() == false", "/x/y"),
        ("newData.hasChildren(['name']) && !newData.hasChild('age')", "/x/y"),
        ("newData.child('a.b').exists() == false", "/x/y"),
    ])
    func newDataIsWhatWillBeThere(expression: String, path: String) throws {
        let outcome = try Self.asking.outcome(of: expression, at: path, writing: ["name": "Katsuo", "more": [1]])
        #expect(outcome == .true, "\(expression)")
    }

    @Test func rulesSeeTheQueryOfTheRequest() throws {
        func query(_ json: JSONValue) throws -> RulesQuery { RulesQuery(try TreeQuery(json)) }
        let byChild = try query(["orderBy": "a/b", "startAt": 3, "limitToLast": 10])
        #expect(
            try Asking(query: byChild).outcome(
                of: """
                    query.orderByChild == 'a/b' && query.startAt == 3 && query.endAt == null
                    && query.limitToLast == 10 && query.limitToFirst == null && !query.orderByKey
                    """) == .true)
        let byKey = try query(["orderBy": "$key", "equalTo": "k", "limitToFirst": 1])
        #expect(byKey.orderByKey && byKey.equalTo == .string("k") && byKey.startAt == nil && byKey.limitToFirst == 1)
        let byValue = try query(["orderBy": "$value", "startAfter": "a", "endBefore": "b"])
        #expect(byValue.orderByValue && byValue.startAt == .string("a") && byValue.endAt == .string("b"))
        #expect(try query(["orderBy": "$priority", "endAt": 7]).endAt == .number(7))
    }

    @Test func tooManyStepsFailOneRuleOnly() throws {
        let long = String(repeating: "a", count: 2_000_000)
        let asking = Asking(data: ["s": .string(long)])
        let outcome = try asking.outcome(of: "root.child('s').val().matches(/(a|b)*c/)")
        #expect(outcome.isError)
        let rules = try Rules.compile(
            #"{"rules": {".write": "root.child('s').val().matches(/(a|b)*c/)", "x": {".write": true}}}"#)
        #expect(try asking.mayWrite(rules, "/x", 1))
    }

    @Test func stepsOfARuleAndOfAnOperationAreLimited() throws {
        let rules = try Rules.compile(
            #"{"rules": {".write": "root.child('s').val().matches(/(a|b)*c/)", "x": {".write": "data.val() == null"}}}"#
        )
        func authorise(_ steps: RulesStepLimits) throws -> (isAllowed: Bool, errors: [String?], isReached: Bool) {
            let before = try TreeNode(json: ["s": .string(String(repeating: "a", count: 100))])
            var situation = RulesContext(auth: .nobody, now: 0, before: before, after: before)
            situation.steps = steps
            var recording = RulesRecording(trace: true)
            let target = RulesTarget(path: try TreePath("/x"), node: try TreeNode(json: 1))
            let verdict = try rules.authoriseWrite([target], situation, recording: &recording)
            return (verdict.isAllowed, recording.trace?.map(\.error) ?? [], recording.hasReachedStepLimit)
        }
        #expect(try authorise(RulesStepLimits()) == (true, [nil, nil], false))
        // Only the rule that takes too many steps fails.
        #expect(
            try authorise(RulesStepLimits(ruleStepsMax: 200))
                == (true, ["The rule takes more than 200 steps.", nil], true))
        // When the steps of the operation are used up, every later rule fails.
        let all = "The rules of this operation take more than 200 steps."
        #expect(try authorise(RulesStepLimits(operationStepsMax: 200)) == (false, [all, all], true))
    }
}
