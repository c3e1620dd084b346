import HatoModel
import HatoRules
import Testing

/// The messages of static types (spec §9.6), one by one, with their columns.
@Suite struct RulesTypingTests {
    static func problems(_ expression: String, rule: String = ".write") -> [String] {
        var writer = JSONWriter()
        writer.write(["rules": ["$x": [rule: .string(expression)]]] as JSONValue)
        let text = String(decoding: writer.bytes, as: UTF8.self)
        // Columns are counted from the first character of the expression.
        let start = text.unicodeScalars.count - writerLength(of: expression) - 3
        do {
            _ = try Rules.compile(text)
            return []
        } catch {
            return error.problems.map { "\($0.column - start): \($0.message)" }
        }
    }

    private static func writerLength(of expression: String) -> Int {
        var writer = JSONWriter()
        writer.write(expression)
        return String(decoding: writer.bytes, as: UTF8.self).unicodeScalars.count - 1
    }

    @Test(arguments: [
        ("1", "1: Expression must evaluate to a boolean."),
        ("auth.token.admin", "1: Expression must evaluate to a boolean."),
        ("data.val()", "1: Expression must evaluate to a boolean."),
        ("true ? 1 : false", "1: Expression must evaluate to a boolean."),
        (
            "(true ? data.child('a') : 1) == 1",
            "7: Invalid ?: expression: a branch is not a number, boolean, string, or null."
        ),
        (
            "(true ? 'a' : data.val) != null",
            "7: Invalid ?: expression: a branch is not a number, boolean, string, or null."
        ),
        ("(true ? query : null) == 1", "7: Invalid ?: expression: a branch is not a number, boolean, string, or null."),
        ("tr", "1: Unknown variable 'tr'."),
        ("$y == 'a'", "1: Unknown variable '$y'."),
        ("data.numChildren() > 1", "6: No such method/property 'numChildren'."),
        ("data.forEach(1) == 1", "6: No such method/property 'forEach'."),
        ("data.key == 'a'", "6: No such method/property 'key'."),
        ("$x.size > 1", "4: No such method/property 'size'."),
        ("data.val().foo == 1", "12: No such method/property 'foo'."),
        ("query.foo == 1", "7: No such method/property 'foo'."),
        ("auth.uid.length() > 1", "10: Type error: Function call on target that is not a function."),
        ("auth.exists()", "6: Type error: Function call on target that is not a function."),
        ("now() > 1", "1: Type error: Function call on target that is not a function."),
        ("now.foo == 1", "5: Invalid property access: target is not an object."),
        ("true.foo == 1", "6: Invalid property access: target is not an object."),
        ("data == null", "6: Invalid == expression: left operand is not a number, boolean, string, null."),
        ("query == null", "7: Invalid == expression: left operand is not a number, boolean, string, null."),
        ("data.exists == true", "13: Invalid == expression: left operand is not a number, boolean, string, null."),
        ("data.child(query.orderByChild).exists()", "12: child() expects a string argument."),
        ("null === data", "6: Invalid == expression: right operand is not a number, boolean, string, or null."),
        ("data !== null", "6: Invalid != expression: left operand is not a number, boolean, string, or null."),
        ("1 != root", "3: Invalid != expression: right operand is not a number, boolean, string, or null."),
        ("null < 1", "6: Invalid < expression: left operand must be a number or string."),
        ("1 <= true", "3: Invalid <= expression: right operand must be a number or string."),
        ("data > 1", "6: Invalid > expression: left operand must be a number or string."),
        ("1 >= null", "3: Invalid >= expression: right operand must be a number or string."),
        ("null + 1 == 1", "6: Invalid + expression: left operand is not a number or string."),
        ("1 + true == 1", "3: Invalid + expression: right operand is not a number or string."),
        ("'a' - 1 == 1", "5: Invalid - expression: left operand is not a number."),
        ("1 * 'a' == 1", "3: Invalid * expression: right operand is not a number."),
        ("null / 1 == 1", "6: Invalid / expression: left operand is not a number."),
        ("1 % true == 1", "3: Invalid % expression: right operand is not a number."),
        ("-'a' == 1", "1: - only operates on numbers."),
        ("!1", "1: ! only operates on booleans."),
        ("!auth.token.admin", "1: ! only operates on booleans."),
        ("1 && true", "3: Left operand of && must be boolean."),
        ("true || auth.uid", "6: Right operand of || must be boolean."),
        ("1 ? true : false", "3: Left operand of ? must be boolean."),
        ("data.child().exists()", "6: child() expects 1 argument."),
        ("data.child('a', 'b').exists()", "6: child() expects 1 argument."),
        ("data.child(1).exists()", "12: child() expects a string argument."),
        ("data.hasChild(now)", "15: hasChild() expects a string argument."),
        ("data.val(1) == 1", "6: val() expects no arguments."),
        ("data.exists(1)", "6: exists() expects no arguments."),
        ("data.parent(1).exists()", "6: parent() expects no arguments."),
        ("$x.contains(1)", "13: contains() expects a string argument."),
        ("$x.beginsWith()", "4: beginsWith() expects 1 argument."),
        ("$x.endsWith(true)", "13: endsWith() expects a string argument."),
        ("$x.toLowerCase(1) == ''", "4: toLowerCase() expects no arguments."),
        ("$x.replace('a') == ''", "4: replace() expects two arguments."),
        ("$x.replace('a', 1) == ''", "17: Argument 2 of replace() must be a string."),
        ("$x.replace(null, 'a') == ''", "12: Argument 1 of replace() must be a string."),
        (
            "data.hasChildren('a', 'b')",
            "6: hasChildren() expects only a single argument (containing an array of child names)."
        ),
        ("data.hasChildren('a')", "18: hasChildren() expects an array of child names."),
        ("data.hasChildren(['a', 7])", "24: hasChildren() expects an array of strings."),
        ("$x.matches('/a/')", "12: matches() expects a regular expression literal argument."),
        ("$x.matches()", "4: matches() expects 1 regular expression literal argument."),
        ("$x.matches(/a/, /b/)", "4: matches() expects 1 regular expression literal argument."),
        ("$x.matches(/a/g)", "12: regular expressions do not support flags other than i"),
        ("$x.matches(/a", "12: unterminated regular expression literal"),
        ("$x.matches(/(a|)/)", "12: Parse error."),
        ("['a'] == null", "1: Unexpected array literal."),
        ("/a/ == null", "1: Unexpected regular expression literal."),
        ("root = 5", "6: Rule expressions may not contain assignments."),
        ("var a = 8", "5: Parse error."),
        ("true; true", "5: Parse error."),
        ("(2**2) == 4", "4: Parse error."),
        ("1 & 1 == 1", "3: Parse error."),
        ("root['exi' + 'sts']()", "5: Invalid property access: target is not an object."),
    ])
    func eachMistakeHasItsMessage(expression: String, problem: String) {
        #expect(Self.problems(expression) == [problem], "\(expression)")
    }

    @Test(arguments: [".write", ".validate"])
    func newDataExistsWhereSomethingIsWritten(rule: String) {
        #expect(Self.problems("newData.exists()", rule: rule).isEmpty)
    }

    @Test func newDataIsRefusedInReads() {
        #expect(
            Self.problems("newData.exists()", rule: ".read").map { $0.drop { $0 != "n" } } == [
                "newData is invalid in .read expressions."
            ])
    }

    @Test func severalProblemsOfOneExpressionAreReportedTogether() {
        #expect(
            Self.problems("foo == bar && data.size() > 1 && !now") == [
                "1: Unknown variable 'foo'.", "8: Unknown variable 'bar'.", "20: No such method/property 'size'.",
                "34: ! only operates on booleans.",
            ])
    }

    @Test func oneMistakeIsOneProblem() {
        #expect(Self.problems("!(foo.bar + 1 > 2) && foo2.child('a').exists()").count == 2)
    }

    @Test(arguments: [
        "auth == null", "auth.uid != null", "true && true", "!false", "data.exists()", "root.child('a').val() === 1",
        "auth.token.admin === true", "now > 5 ? true : false", "true || 1 / 0 > -.5e1",
        "auth.uid.matches(/^[/a-z]+$/i)", "root.hasChildren(['a', 'b/c', $x, auth.uid])",
        "query.limitToFirst <= 10 && query.orderByKey", "auth.token['x']['y'] == auth.token[$x]",
        "(true ? 'a' : 1) == 'a'", "(true ? root : data).child('a').exists()", "auth.contains('x')",
        "data.val() + 1 > 'a' + now", "root['child']('a')['val']() == null", "$x['length'] > 1",
        "data.parent().parent().hasChildren()", "data.getPriority() >= 1", "auth.firebase.identities['a.b'][0] == 'x'",
        "'a'.replace('a', $x).toUpperCase().toLowerCase().endsWith('b')", "query.orderByChild == 'a/b'",
        "data.val().matches(/^\\\\d{4}-[0-9]{2,}(a|b)?.*[^x]+\\\\.$/)",
    ])
    func wellTypedExpressionsAreAccepted(expression: String) {
        #expect(Self.problems(expression) == [])
    }
}
