extension Messages.Rules {
    /// Asks the rules about an operation as somebody, and writes nothing: which rules were met, and what they said.
    public struct Check: RPCRequest {
        public static let method = "messages.rules.check"
        public static let summary = "Tells what the rules would say to an operation, and why; writes nothing"
        public static let access = Access.administrator
        public static let effect = Effect.read

        public var database: DatabaseName?
        public var operation: Operation
        public var path: TreePath
        /// What `set`, `update` and `push` would write, which must have one; null is one. The other operations have none.
        public var value: JSONValue?
        /// Of a `get` or `listen`; the other operations have none.
        public var query: TreeQuery?
        /// Who asks; null or absent: nobody who is signed in.
        public var `as`: Speaker?

        public init(
            _ operation: Operation, at path: TreePath, value: JSONValue? = nil, as speaker: Speaker? = nil
        ) {
            self.operation = operation
            self.path = path
            self.value = value
            self.as = speaker
        }

        public enum Operation: String, Sendable, Hashable, Codable, CaseIterable {
            case get, listen, set, update, push, remove
        }

        /// A user as the rules see one.
        public struct Speaker: Codable, Sendable, Hashable {
            public var uid: String
            /// The claims of the ID token.
            public var token: JSONObject?

            public init(uid: String, token: JSONObject? = nil) {
                self.uid = uid
                self.token = token
            }

            public var caller: Caller { .user(Caller.User(uid: uid, claims: token ?? [:])) }
        }

        public struct Result: Codable, Sendable, Hashable {
            public var allowed: Bool
            /// Every rule that was asked, in that order.
            public var trace: [Step]

            public init(allowed: Bool, trace: [Step]) {
                self.allowed = allowed
                self.trace = trace
            }
        }

        /// One rule that was asked.
        public struct Step: Codable, Sendable, Hashable {
            /// The node the rule was asked at.
            public var path: TreePath
            /// `.read`, `.write` or `.validate`.
            public var rule: String
            public var expression: String
            public var result: Bool
            /// What went wrong while it was evaluated, which makes a rule false.
            public var error: String?
            /// The part of the expression that made it false.
            public var failed: Excerpt?

            public init(path: TreePath, rule: String, expression: String, result: Bool) {
                self.path = path
                self.rule = rule
                self.expression = expression
                self.result = result
            }
        }

        /// A part of an expression with its place in the rules text, counted from 1.
        public struct Excerpt: Codable, Sendable, Hashable {
            public var expression: String
            public var line: Int
            public var column: Int

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
            Messages.Rules.Check(.remove, at: MessagesExamples.room, as: Speaker(uid: "katsuo")),
            Result(allowed: false, trace: [step]))
    }
}
