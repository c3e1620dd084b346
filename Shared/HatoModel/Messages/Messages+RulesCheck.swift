extension Messages.Rules {
    /// Evaluates the rules for an operation as a given user, and writes nothing: returns the evaluated rules and their
    /// results.
    public struct Check: RPCRequest {
        public static let method = "messages.rules.check"
        public static let summary = "Returns the verdict of the rules on an operation, and why; writes nothing"
        public static let access = Access.administrator
        public static let effect = Effect.read

        public var database: DatabaseName?
        public var operation: Operation
        public var path: TreePath
        public var value: JSONValue?
        public var query: TreeQuery?
        public var `as`: User?

        public static let fields = Fields<Self>(
            blank: Self(.get, at: .root),
            .database(\.database),
            .required("operation", \.operation, "The operation to check"),
            .path(\.path),
            .optionalJSON(
                "value", \.value,
                """
                The value that `set` or `push` would write, or for `update` an object of values by relative \
                path; required for these three (null counts as a value), not allowed for others
                """,
                example: MessagesExamples.value),
            .optional(
                "query", \.query,
                "The query of a `get` or `listen`; the other operations have none",
                example: MessagesExamples.query),
            .optional(
                "as", \.`as`,
                "The user for whom the rules are evaluated; without a user when null or absent",
                example: User(uid: "masuo")))

        public init(
            _ operation: Operation, at path: TreePath, value: JSONValue? = nil, as user: User? = nil
        ) {
            self.operation = operation
            self.path = path
            self.value = value
            self.as = user
        }

        /// The operation that is checked.
        public enum Operation: String, FieldChoice {
            case get, listen, set, update, push, remove
        }

        /// A user in the form that rules see.
        public struct User: FieldObject, Hashable {
            public var uid: String
            public var token: JSONObject?

            public static let fields = Fields<Self>(
                blank: Self(uid: ""),
                .required(
                    "uid", \.uid,
                    """
                    `auth.uid` in the rules, any text; that of a signed-in user has 1 to 128 Unicode code \
                    points
                    """),
                .optional("token", \.token, "The claims of the ID token: `auth.token` in the rules"))

            public init(uid: String, token: JSONObject? = nil) {
                self.uid = uid
                self.token = token
            }

            /// The caller for the rules.
            public var caller: Caller { .user(Caller.User(uid: uid, claims: token ?? [:])) }
        }

        public struct Result: FieldObject, Hashable {
            public var allowed: Bool
            public var trace: [Step]
            public var traceLeftOut: Int?

            public static let fields = Fields<Self>(
                blank: Self(allowed: false, trace: []),
                .required("allowed", \.allowed, "Whether the rules allow the operation"),
                .required(
                    "trace", \.trace,
                    """
                    The evaluated rules in the order of evaluation: the last 1,000 (setting `refusal-trace-max`)
                    """),
                .optional(
                    "traceLeftOut", \.traceLeftOut,
                    "The number of evaluated rules before those in `trace`; none when absent"))

            public init(allowed: Bool, trace: [Step]) {
                self.allowed = allowed
                self.trace = trace
            }
        }

        /// One rule that was evaluated.
        public struct Step: FieldObject, Hashable {
            public var path: TreePath
            public var rule: String
            public var expression: String
            public var result: Bool
            public var error: String?
            public var failed: Excerpt?

            public static let fields = Fields<Self>(
                blank: Self(path: .root, rule: "", expression: "", result: false),
                .required("path", \.path, "The node the rule was evaluated at"),
                .required("rule", \.rule, "`.read`, `.write` or `.validate`"),
                .required("expression", \.expression, "The text of the expression"),
                .required("result", \.result, "What the rule evaluated to"),
                .optional("error", \.error, "What failed during the evaluation, which makes a rule false"),
                .optional("failed", \.failed, "The part of the expression that made it false"))

            public init(path: TreePath, rule: String, expression: String, result: Bool) {
                self.path = path
                self.rule = rule
                self.expression = expression
                self.result = result
            }
        }

        /// A part of an expression with its position in the rules text, counted from 1.
        public struct Excerpt: FieldObject, Hashable {
            public var expression: String
            public var line: Int
            public var column: Int

            public static let fields = Fields<Self>(
                blank: Self(expression: "", line: 0, column: 0),
                .required("expression", \.expression, "The text of that part"),
                .required("line", \.line, "The line in the text of the rules, from 1"),
                .required("column", \.column, "The column in that line, from 1"))

            public init(expression: String, line: Int, column: Int) {
                self.expression = expression
                self.line = line
                self.column = column
            }
        }
    }
}

extension Messages.Rules.Check {
    public static var example: RPCExample<Self> {
        var step = Step(
            path: MessagesExamples.room, rule: ".write", expression: "auth != null && auth.uid == 'masuo'",
            result: false)
        step.failed = Excerpt(expression: "auth.uid == 'masuo'", line: 3, column: 33)
        return RPCExample(
            Messages.Rules.Check(.remove, at: MessagesExamples.room, as: User(uid: "katsuo")),
            Result(allowed: false, trace: [step]))
    }
}
