import HatoModel
import HatoPush

/// The app whose tokens are named in place of devices.
struct TokenApp: Sendable, Hashable {
    var platform: Notifier.Platform
    /// Nil: `default`.
    var app: String?

    /// Of a token that is read.
    static let tokenBytesMax = 4_096

    /// Nil for a platform without tokens.
    init?(_ platform: Notifier.Platform, app: String?) {
        switch platform {
        case .apns, .fcm: self.platform = platform
        case .webpush, .webhook, .email: return nil
        }
        self.app = app == Delivery.defaultApp ? nil : app
    }

    /// A device without a user, for where no device has the token. Throws `invalid_token` when it is none.
    func device(_ id: String, with token: String, at now: Int64) throws(ArgumentError) -> DeviceRecord {
        switch platform {
        case .apns:
            let checked = try APNsDevice(token: token, environment: .production)
            return DeviceRecord(checked.token, of: self, named: id, at: now)
        default:
            _ = try FCMRegistration(token: token)
            return DeviceRecord(token, of: self, named: id, at: now)
        }
    }
}

/// Recipients of several kinds, as one firing of a trigger has them.
struct RecipientQuery: Sendable, Hashable {
    /// Those that the trigger names, and that of the field.
    var uids: [String] = []
    /// A node whose keys are uids.
    var keys: TreePath?
    /// A node whose values are uids.
    var values: TreePath?
    /// The token that the change holds.
    var token: String?
    /// Where each of these users has a token.
    var tokenPath: TokenPath?
    /// Of the tokens.
    var app: TokenApp?
    /// Whose token is left out; only where tokens are read, or where it is seen which users are there.
    var author: String?
    /// Where it is seen that a user is there.
    var presence: TokenPath?

    var isEmpty: Bool { uids.isEmpty && keys == nil && values == nil && token == nil }

    /// Users whose tokens are read.
    static let tokensMax = 1_000
    /// Uids that are taken of the values of a node.
    static let valuesMax = 1_000

    /// What it takes in memory.
    var bytes: Int {
        let texts =
            [keys?.text, values?.text, token, app?.app, author].compactMap(\.self) + (tokenPath?.pieces ?? [])
            + (presence?.pieces ?? [])
        return (uids + texts).reduce(256) { $0 + 32 + $1.utf8.count }
    }

    /// A path with places for a uid.
    struct TokenPath: Sendable, Hashable {
        fileprivate var pieces: [String]

        /// The text is the path with this mark in the place of the uid.
        init(_ text: String) { pieces = text.components(separatedBy: Self.mark) }

        /// No key of a tree has it.
        static let mark: Character = "\u{0}"

        /// Nil for what cannot be a path.
        func path(of uid: String) -> TreePath? {
            guard TreeKey.problem(uid) == nil, let path = try? TreePath(pieces.joined(separator: uid)),
                !path.isPriority
            else { return nil }
            return path
        }

        /// The node whose keys are the uids; nil where a uid stands elsewhere.
        var parent: TreePath? {
            guard pieces.count == 2, pieces[1].isEmpty, pieces[0].hasSuffix("/"), pieces[0] != "/" else { return nil }
            return try? TreePath(String(pieces[0].dropLast()))
        }
    }
}

extension String {
    fileprivate func components(separatedBy mark: Character) -> [String] {
        split(separator: mark, omittingEmptySubsequences: false).map(String.init)
    }
}

/// Whom a trigger notifies, as it was read and found right.
struct CompiledRecipients: Sendable {
    private var uids: [String] = []
    private var keys: Template?
    private var values: Template?
    private var uidField: FieldPath?
    private var tokenField: FieldPath?
    /// With the parameter `uid`.
    private var tokenAt: Template?
    private var app: TokenApp?
    /// With the parameter `uid`.
    private var presenceAt: Template?
    private let uidBytesMax: Int

    /// Throws `RPCError` that names the parameter.
    init(_ named: Notifier.Recipients, parameters names: [String], _ limits: NotifierLimits) throws(RPCError) {
        uidBytesMax = limits.uidBytesMax
        if let uids = named.uids {
            guard !uids.isEmpty, uids.count <= limits.recipientsMax else {
                throw Self.invalid("uids", "1 to \(limits.recipientsMax) uids can be named")
            }
            self.uids = uids
        }
        keys = try Self.path(named.uidsAt, "uidsAt", names, example: "/chats/{chat}/members")
        values = try Self.path(named.uidsIn, "uidsIn", names, example: "/chats/{chat}/ids")
        uidField = try Self.field(named.uidField, "uidField", example: "after.to")
        tokenField = try Self.field(named.tokenField, "tokenField", example: "after.receiver_fcm_token")
        tokenAt = try Self.path(named.tokenAt, "tokenAt", names + ["uid"], example: "/users/{uid}/fcm_token")
        let namesUsers = !uids.isEmpty || keys != nil || values != nil || uidField != nil
        guard namesUsers || named.tokenField != nil || named.tokenAt != nil else {
            throw .invalidArgument(
                "recipients", reason: "invalid_recipients",
                "Give one or more of uids, uidsAt, uidsIn, uidField, tokenField")
        }
        try checkTokens(named, namesUsers: namesUsers)
    }

    /// The same without those that are there; `path` as in `Notifier.Trigger`. Throws `RPCError` that names the
    /// parameter.
    func without(presentAt path: String?, parameters names: [String]) throws(RPCError) -> CompiledRecipients {
        guard let path else { return self }
        guard path.hasPrefix("/"), path.contains("{uid}") else {
            throw .invalidArgument(
                "presenceAt", reason: "invalid_presence",
                "presenceAt is a path with {uid} in it, e.g. /chats/{chat}/viewing/{uid}")
        }
        var recipients = self
        recipients.presenceAt = try CompiledTrigger.template(path, "presenceAt", names + ["uid"])
        return recipients
    }

    private mutating func checkTokens(_ named: Notifier.Recipients, namesUsers: Bool) throws(RPCError) {
        guard let member = named.tokenField != nil ? "tokenField" : named.tokenAt != nil ? "tokenAt" : nil else {
            guard named.platform == nil, named.app == nil else {
                throw Self.invalid(
                    named.platform == nil ? "app" : "platform", "platform and app are those of tokenField and tokenAt")
            }
            return
        }
        guard named.tokenField == nil || named.tokenAt == nil else {
            throw Self.invalid("tokenAt", "Give one of tokenField and tokenAt")
        }
        if let text = named.tokenAt {
            guard namesUsers else {
                throw Self.invalid("tokenAt", "tokenAt needs uids, uidsAt, uidsIn or uidField beside it")
            }
            guard text.contains("{uid}") else {
                throw Self.invalid("tokenAt", "tokenAt has {uid} in it, e.g. /users/{uid}/fcm_token")
            }
        }
        guard let platform = named.platform else {
            throw Self.invalid("platform", "\(member) needs the platform of the token: apns or fcm")
        }
        app = TokenApp(platform, app: named.app)
        guard app != nil else {
            throw .invalidArgument(
                "recipients.platform", reason: "unsupported_platform", "Tokens are those of apns and fcm")
        }
    }

    private static func path(
        _ text: String?, _ member: String, _ names: [String], example: String
    ) throws(RPCError) -> Template? {
        guard let text else { return nil }
        guard text.hasPrefix("/") else { throw invalid(member, "\(member) is a path, e.g. \(example)") }
        do { return try Template(text, parameters: names) } catch {
            throw .invalidArgument("recipients.\(member)", reason: error.reason, error.message)
        }
    }

    private static func field(_ text: String?, _ member: String, example: String) throws(RPCError) -> FieldPath? {
        guard let text else { return nil }
        guard let field = FieldPath(text), !field.keys.isEmpty else {
            throw invalid(member, "\(member) is a field of the change, e.g. \(example)")
        }
        return field
    }

    private static func invalid(_ member: String, _ message: String) -> RPCError {
        .invalidArgument("recipients.\(member)", reason: "invalid_recipients", message)
    }

    /// The fields of a change that it needs.
    var fields: [FieldPath] {
        let templates = [keys, values, tokenAt, presenceAt].compactMap(\.self)
        return templates.flatMap(\.fields) + [uidField, tokenField].compactMap(\.self)
    }

    /// The uids that the trigger itself names.
    var namedUIDs: [String] { uids }

    /// Whom a change concerns, as far as the change says; nil when that is no one.
    func query(_ change: FeedChange) -> RecipientQuery? {
        var query = RecipientQuery()
        query.uids = uids
        if let uid = uidField?.text(in: change), !uid.isEmpty, uid.utf8.count <= uidBytesMax { query.uids.append(uid) }
        query.keys = path(keys, change)
        query.values = path(values, change)
        query.token = tokenField?.text(in: change).flatMap { text in
            (1...TokenApp.tokenBytesMax).contains(text.utf8.count) ? text : nil
        }
        query.app = app
        query.tokenPath = userPath(tokenAt, change)
        query.presence = userPath(presenceAt, change)
        if query.tokenPath != nil || query.presence != nil { query.author = change.uid }
        return query.isEmpty ? nil : query
    }

    /// Where the recipients of a change are to be found: a simple list is shared by many firings.
    func source(_ change: FeedChange, of trigger: String) -> RecipientLists.Source? {
        guard let query = query(change) else { return nil }
        if query.presence != nil { return .query(query) }
        let isFieldless = uidField == nil && query.token == nil && query.tokenPath == nil && query.values == nil
        if isFieldless, query.keys == nil { return .named(by: trigger) }
        if isFieldless, uids.isEmpty, let keys = query.keys { return .keys(of: keys) }
        let isOneUser = query.keys == nil && query.values == nil && query.token == nil && query.tokenPath == nil
        if isOneUser, query.uids.count == 1, let uid = query.uids.first { return .user(uid) }
        return .query(query)
    }

    private func userPath(_ template: Template?, _ change: FeedChange) -> RecipientQuery.TokenPath? {
        var marked = change
        marked.parameters["uid"] = String(RecipientQuery.TokenPath.mark)
        return template.map { .init($0.filled(with: marked, until: TreeLimits.pathBytesMax)) }
    }

    private func path(_ template: Template?, _ change: FeedChange) -> TreePath? {
        guard let template else { return nil }
        // A field can hold a slash; then this is no path, or another one than was meant. It leads to uids at most.
        let text = template.filled(with: change, until: TreeLimits.pathBytesMax)
        guard let path = try? TreePath(text) else { return nil }
        // A priority has no keys.
        return path.isPriority ? nil : path
    }
}
