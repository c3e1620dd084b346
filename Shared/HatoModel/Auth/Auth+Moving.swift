extension Auth {
    /// How the password hashes of an import were made; the names are Firebase's, and `ARGON2` and `PBKDF2_SHA512`
    /// besides.
    public enum HashAlgorithm: String, FieldChoice {
        case scrypt = "SCRYPT"
        case standardScrypt = "STANDARD_SCRYPT"
        case hmacSHA512 = "HMAC_SHA512"
        case hmacSHA256 = "HMAC_SHA256"
        case hmacSHA1 = "HMAC_SHA1"
        case hmacMD5 = "HMAC_MD5"
        case pbkdf2SHA512 = "PBKDF2_SHA512"
        case pbkdf2SHA256 = "PBKDF2_SHA256"
        case pbkdfSHA1 = "PBKDF_SHA1"
        case sha512 = "SHA512"
        case sha256 = "SHA256"
        case sha1 = "SHA1"
        case md5 = "MD5"
        case bcrypt = "BCRYPT"
        case argon2 = "ARGON2"
    }

    /// Where the salt is in what was hashed.
    public enum PasswordHashOrder: String, FieldChoice {
        case passwordFirst = "PASSWORD_AND_SALT"
        case saltFirst = "SALT_AND_PASSWORD"
    }
}

extension Auth.Users {
    /// An account with the hash of its password, as `auth.users.import` reads and `auth.users.export` writes it.
    public struct Row: FieldObject, Hashable {
        public var uid: String?
        public var email: String?
        public var emailVerified: Bool?
        public var username: String?
        public var displayName: String?
        public var photoUrl: String?
        public var phoneNumber: String?
        public var disabled: Bool?
        public var customAttributes: String?
        public var createdAt: Int64?
        public var lastLoginAt: Int64?
        public var passwordUpdatedAt: Int64?
        public var initialEmail: String?
        public var emailLinkSignin: Bool?
        public var customAuth: Bool?
        public var providerUserInfo: [Auth.Account.Provider]?
        public var passwordHash: String?
        public var salt: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional("uid", \.uid, "The id of the user; a row without one is refused"),
            .optional("email", \.email, "The e-mail address, at most 254 bytes"),
            .optional("emailVerified", \.emailVerified, "Whether the owner has proved to receive mail at `email`"),
            .username(\.username),
            .displayName(\.displayName),
            .photoUrl(\.photoUrl),
            .phoneNumber(\.phoneNumber),
            .optional(
                "disabled", \.disabled,
                "Whether signing in is denied; when absent, as in the account that is replaced, and `false` for a new one"
            ),
            .optional(
                "customAttributes", \.customAttributes, "Custom claims of the ID tokens: a JSON object as a string"),
            .optional(
                "createdAt", \.createdAt,
                "When the account was created, in milliseconds since 1970; now when absent"),
            .optional("lastLoginAt", \.lastLoginAt, "The last sign-in, in milliseconds since 1970"),
            .optional(
                "passwordUpdatedAt", \.passwordUpdatedAt,
                "When the password was set, in milliseconds since 1970; `createdAt` when absent"),
            .optional("initialEmail", \.initialEmail, "The first e-mail address of the account"),
            .optional(
                "emailLinkSignin", \.emailLinkSignin,
                "Whether the user has signed in with a code of a mail; when absent, as in the account that is replaced"),
            .optional(
                "customAuth", \.customAuth,
                "Whether the user has signed in with a custom token; when absent, as in the account that is replaced"),
            .optional(
                "providerUserInfo", \.providerUserInfo,
                """
                The identities of providers that sign in to the account, at most one of each provider; entries of \
                `password` and `phone` are skipped. When absent, as in the account that is replaced
                """),
            .optional(
                "passwordHash", \.passwordHash,
                """
                The hash of the password: base64 (either alphabet, with or without padding), made with \
                `hashAlgorithm`; or a text with all parameters, such as `$2b$10$…`, `$argon2id$v=19$…` or what \
                `auth.users.export` has written. Without `email` and `username` it is kept, and signs in as soon as \
                the account has one of them
                """),
            .optional("salt", \.salt, "The salt of the hash in base64; empty when absent"))

        public init(uid: String? = nil) { self.uid = uid }

        static var example: Row {
            var row = Row(uid: Auth.Account.example.uid)
            row.email = "masuo@example.com"
            row.displayName = "マスオさん"
            row.createdAt = Auth.Account.example.createdAt
            return row
        }
    }

    /// Writes the accounts of another service, with the hashes of their passwords, in one transaction. Rows that are
    /// wrong are refused by their index, and the others are written; what is wrong with the whole request refuses all.
    ///
    /// A row that says what its account is already is neither written nor refused: a call whose outcome is not known
    /// may be repeated.
    public struct Import: RPCRequest {
        public static let method = "auth.users.import"
        public static let summary = """
            Writes the accounts of another service, with the hashes of their passwords; the first right \
            password of an account replaces its hash by one of this service
            """
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            var row = Row.example
            row.passwordHash = "$2b$10$8Vd/5//7f/tIRGxcCG37luP5reI70Tpmi91dPsk7urFyJ2Lh6AAXC"
            return RPCExample(
                Self(users: [row, Row()]),
                Result(
                    imported: 1,
                    errors: [
                        RowError(
                            index: 1, uid: nil, parameter: "uid", reason: "MISSING_LOCAL_ID", message: "uid is missing")
                    ]))
        }

        public var users: [Row]
        public var hashAlgorithm: Auth.HashAlgorithm?
        public var signerKey: String?
        public var saltSeparator: String?
        public var rounds: Int?
        public var memoryCost: Int?
        public var cpuMemCost: Int?
        public var blockSize: Int?
        public var parallelization: Int?
        public var dkLen: Int?
        public var passwordHashOrder: Auth.PasswordHashOrder?
        public var allowOverwrite: Bool?
        public var dryRun: Bool?

        public static let fields = Fields<Self>(
            blank: Self(users: []),
            .required(
                "users", \.users,
                """
                The accounts, 1 to 1,000; a uid, an e-mail address, a username, a phone number or an identity of a \
                provider that two of them have refuses all
                """),
            .optional(
                "hashAlgorithm", \.hashAlgorithm,
                "How each `passwordHash` in base64 was made; not needed for texts that begin with `$`",
                example: .scrypt),
            .optional(
                "signerKey", \.signerKey,
                "The key of `SCRYPT` (16 to 128 bytes) and `HMAC_…` (1 to 1,024 bytes), in base64",
                example: "c2lnbmVyIGtleSBvZiAzMiBieXRlcywgaW4gYmFzZTY0"),
            .optional(
                "saltSeparator", \.saltSeparator, "Of `SCRYPT`: what follows each salt, in base64, at most 64 bytes",
                example: "Bw=="),
            .optional(
                "rounds", \.rounds,
                """
                Of `SCRYPT` 1 to 8, of `PBKDF2_…` and `PBKDF_SHA1` 1 to 10,000,000; of `SHA…` 1 to 8,192 and of \
                `MD5` 0 to 8,192, 1 when absent
                """, example: 8),
            .optional("memoryCost", \.memoryCost, "Of `SCRYPT`: 1 to 14", example: 14),
            .optional(
                "cpuMemCost", \.cpuMemCost,
                "Of `STANDARD_SCRYPT`: N, a power of 2; 128 × N × `blockSize` is at most 256 MiB", example: 16_384),
            .optional("blockSize", \.blockSize, "Of `STANDARD_SCRYPT`: r, 1 to 16", example: 8),
            .optional("parallelization", \.parallelization, "Of `STANDARD_SCRYPT`: p, 1 to 16", example: 1),
            .optional(
                "dkLen", \.dkLen, "Of `STANDARD_SCRYPT`: the bytes of each hash; any of 16 to 128 when absent",
                example: 64),
            .optional(
                "passwordHashOrder", \.passwordHashOrder,
                "Of `HMAC_…`, `SHA…` and `MD5`: what comes first; `PASSWORD_AND_SALT` when absent",
                example: .saltFirst),
            .optional(
                "allowOverwrite", \.allowOverwrite,
                """
                Whether a row replaces the account with its uid: its sessions end if the password or the e-mail \
                address is another one. When absent or false, such a row is refused
                """, example: true),
            .optional("dryRun", \.dryRun, "Whether nothing is written; the result is the same", example: true))

        public init(users: [Row]) { self.users = users }

        public struct Result: FieldObject, Hashable {
            public var imported: Int
            public var errors: [RowError]

            public static let fields = Fields<Self>(
                blank: Self(imported: 0, errors: []),
                .required(
                    "imported", \.imported,
                    "How many accounts are as their rows say, those that were so before included"),
                .required("errors", \.errors, "The refused rows, in the order of `index`"))

            public init(imported: Int, errors: [RowError]) {
                self.imported = imported
                self.errors = errors
            }
        }

        /// A row that was refused.
        public struct RowError: FieldObject, Hashable {
            public var index: Int
            public var uid: String?
            public var parameter: String
            public var reason: String
            public var message: String

            public static let fields = Fields<Self>(
                blank: Self(index: 0, uid: nil, parameter: "", reason: "", message: ""),
                .required("index", \.index, "The position of the row in `users`, from 0"),
                .optional("uid", \.uid, "The uid of the row; absent without one"),
                .required("parameter", \.parameter, "The member of the row that is wrong"),
                .required(
                    "reason", \.reason,
                    """
                    As of `auth.users.create`, or `MISSING_LOCAL_ID`, `DUPLICATE_LOCAL_ID` (the account exists), \
                    `FEDERATED_USER_ID_ALREADY_LINKED`, `INVALID_PROVIDER_ID`, `INVALID_PASSWORD_HASH`, `INVALID_TIME`
                    """),
                .required("message", \.message, "What is right"))

            public init(index: Int, uid: String?, parameter: String, reason: String, message: String) {
                self.index = index
                self.uid = uid
                self.parameter = parameter
                self.reason = reason
                self.message = message
            }
        }
    }

    /// The accounts with the hashes of their passwords, for `auth.users.import` of another Hato: keep the result as
    /// secret as the data folder.
    public struct Export: RPCRequest {
        public static let method = "auth.users.export"
        public static let summary = """
            Lists accounts with the hashes of their passwords in the order of their uids, page by page, as \
            `auth.users.import` reads them
            """
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static var example: RPCExample<Self> {
            RPCExample(Self(limit: 1), Result(users: [.example], after: Auth.Account.example.uid))
        }

        public var after: String?
        public var limit: Int?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "after", \.after, "The `after` of the previous page; the first page when absent",
                example: Auth.Account.example.uid),
            .optional("limit", \.limit, "The maximum number of entries, 1 to 1,000; 1,000 when absent"))

        public init(after: String? = nil, limit: Int? = nil) {
            self.after = after
            self.limit = limit
        }

        public struct Result: FieldObject, Hashable {
            public var users: [Row]
            public var after: String?

            public static let fields = Fields<Self>(
                blank: Self(users: []),
                .required("users", \.users, "The accounts in the order of their uids"),
                .optional("after", \.after, "The `after` of the next page; absent on the last one"))

            public init(users: [Row], after: String? = nil) {
                self.users = users
                self.after = after
            }
        }
    }
}
