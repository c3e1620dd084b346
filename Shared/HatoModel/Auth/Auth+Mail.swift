extension Auth {
    /// The mails that wait for the SMTP server, and those that it refused.
    public enum Mail {
        /// Whether a mail is still sent.
        public enum State: String, FieldChoice {
            case waiting
            /// Refused for good, or not accepted in time.
            case dead
        }

        /// A mail of the queue, without what it says.
        public struct Entry: FieldObject, Hashable {
            public var mail: String
            public var to: String
            public var type: CodeType
            public var state: State
            public var createdAt: Int64
            public var attempts: Int
            public var nextAt: Int64?
            public var error: String?

            public static let fields = Fields<Self>(
                blank: Self(mail: "", to: "", type: .verifyEmail, createdAt: 0),
                .required("mail", \.mail, "The id of the mail"),
                .required("to", \.to, "Its address"),
                .required("type", \.type, "What its code is for"),
                .required("state", \.state, "`waiting`, or `dead`: it is not sent again by itself"),
                .required("createdAt", \.createdAt, "When it was requested, in milliseconds since 1970"),
                .required("attempts", \.attempts, "How often it was sent"),
                .optional(
                    "nextAt", \.nextAt, "When it is sent next, in milliseconds since 1970; absent when it is dead"),
                .optional("error", \.error, "Why it was not accepted the last time"))

            /// A mail that waits since `createdAt`, in milliseconds since 1970.
            public init(mail: String, to: String, type: CodeType, createdAt: Int64) {
                self.mail = mail
                self.to = to
                self.type = type
                self.createdAt = createdAt
                state = .waiting
                attempts = 0
            }

            static var example: Entry {
                var entry = Entry(
                    mail: "AAABoe7nRAAwpx7Kb1zT4A", to: "masuo@example.com", type: .passwordReset,
                    createdAt: 1_795_000_000_000)
                entry.state = .dead
                entry.attempts = 1
                entry.error = "RCPT: 550 no such mailbox"
                return entry
            }
        }

        public struct List: RPCRequest {
            public static let method = "auth.mail.list"
            public static let summary = "Lists the mails of the queue, the oldest first, page by page"
            public static let access = Access.administrator
            public static let effect = Effect.read
            public static var example: RPCExample<Self> {
                var request = Self()
                request.state = .dead
                return RPCExample(request, Result(mails: [.example]))
            }

            public var state: State?
            public var after: String?
            public var limit: Int?

            public static let fields = Fields<Self>(
                blank: Self(),
                .optional("state", \.state, "Only mails of this state; all when absent"),
                .optional(
                    "after", \.after, "The `after` of the previous page; the first page when absent",
                    example: Entry.example.mail),
                .optional(
                    "limit", \.limit, "The maximum number of entries, 1 to 1,000; 1,000 when absent", example: 100))

            public init() {}

            public struct Result: FieldObject, Hashable {
                public var mails: [Entry]
                public var after: String?

                public static let fields = Fields<Self>(
                    blank: Self(mails: []),
                    .required("mails", \.mails, "The mails, the oldest first"),
                    .optional("after", \.after, "The `after` of the next page; absent on the last one"))

                public init(mails: [Entry], after: String? = nil) {
                    self.mails = mails
                    self.after = after
                }
            }
        }

        /// How many mails a request changed.
        public struct Changed: FieldObject, Hashable {
            public var mails: Int

            public static let fields = Fields<Self>(
                blank: Self(mails: 0), .required("mails", \.mails, "How many mails were changed"))

            public init(mails: Int) { self.mails = mails }
        }

        /// A mail whose code is over is not sent again.
        public struct Replay: RPCRequest {
            public typealias Result = Changed
            public static let method = "auth.mail.replay"
            public static let summary = "Sends dead mails again whose codes are still valid: one, or up to 1,000"
            public static let access = Access.administrator
            public static let effect = Effect.write
            public static var example: RPCExample<Self> {
                RPCExample(Self(mail: Entry.example.mail), Changed(mails: 1))
            }

            public var mail: String?
            public var all: Bool?

            public static let fields = Fields<Self>(
                blank: Self(),
                .optional("mail", \.mail, "The id of the mail; exactly one of `mail` and `all`"),
                .optional("all", \.all, "True: the oldest 1,000 of them", example: true))

            public init(mail: String? = nil, all: Bool? = nil) {
                self.mail = mail
                self.all = all
            }
        }

        public struct Drop: RPCRequest {
            public typealias Result = Changed
            public static let method = "auth.mail.drop"
            public static let summary = "Deletes a mail of the queue, or up to 1,000 dead ones"
            public static let access = Access.administrator
            public static let effect = Effect.write
            public static var example: RPCExample<Self> {
                RPCExample(Self(mail: Entry.example.mail), Changed(mails: 1))
            }

            public var mail: String?
            public var all: Bool?

            public static let fields = Fields<Self>(
                blank: Self(),
                .optional("mail", \.mail, "The id of the mail; exactly one of `mail` and `all`"),
                .optional("all", \.all, "True: the oldest 1,000 dead mails", example: true))

            public init(mail: String? = nil, all: Bool? = nil) {
                self.mail = mail
                self.all = all
            }
        }
    }

    /// The folder into which mails go instead of a server, for tests and development (setting `mailbox`).
    public enum Mailbox {
        /// A mail as it was written into the folder.
        public struct Mail: FieldObject, Hashable {
            public var to: String
            public var type: CodeType
            public var time: Int64
            public var subject: String
            public var text: String
            public var code: String
            public var digits: String?
            public var link: String?

            public static let fields = Fields<Self>(
                blank: Self(to: "", type: .verifyEmail, code: ""),
                .required("to", \.to, "Its address"),
                .required("type", \.type, "What its code is for"),
                .required("time", \.time, "When it was requested, in milliseconds since 1970"),
                .required("subject", \.subject, "Its subject"),
                .required("text", \.text, "What it says"),
                .required("code", \.code, "The long form of its code"),
                .optional("digits", \.digits, "The digits of its code"),
                .optional("link", \.link, "The link with the long form"))

            public init(to: String, type: CodeType, code: String) {
                self.to = to
                self.type = type
                self.code = code
                time = 0
                subject = ""
                text = ""
            }

            static var example: Mail {
                var mail = Mail(to: "masuo@example.com", type: .passwordReset, code: Code.codeExample)
                mail.time = 1_795_000_000_000
                mail.subject = "パスワードの再設定"
                mail.text = "masuo@example.com のパスワードを…"
                mail.digits = Code.digitsExample
                return mail
            }
        }

        public struct List: RPCRequest {
            public static let method = "auth.mailbox.list"
            public static let summary = """
                Lists the mails in the folder of the setting `mailbox`, the oldest first, page by page; the folder \
                keeps the newest 1,000
                """
            public static let access = Access.administrator
            public static let effect = Effect.read
            public static var example: RPCExample<Self> {
                RPCExample(Self(to: "masuo@example.com"), Result(mails: [.example]))
            }

            public var to: String?
            public var after: String?
            public var limit: Int?

            public static let fields = Fields<Self>(
                blank: Self(),
                .optional("to", \.to, "Only mails to this address; all when absent"),
                .optional(
                    "after", \.after, "The `after` of the previous page; the first page when absent",
                    example: "1795000000000-AAABoe7nRAAwpx7Kb1zT4A"),
                .optional("limit", \.limit, "The maximum number of entries, 1 to 100; 100 when absent", example: 10))

            public init(to: String? = nil) { self.to = to }

            public struct Result: FieldObject, Hashable {
                public var mails: [Mail]
                public var after: String?

                public static let fields = Fields<Self>(
                    blank: Self(mails: []),
                    .required("mails", \.mails, "The mails, the oldest first"),
                    .optional("after", \.after, "The `after` of the next page; absent on the last one"))

                public init(mails: [Mail], after: String? = nil) {
                    self.mails = mails
                    self.after = after
                }
            }
        }
    }
}
