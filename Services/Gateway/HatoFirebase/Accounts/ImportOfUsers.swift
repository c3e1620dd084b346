import HatoModel

/// `batchCreate`: accounts of another service with the hashes of their passwords (spec auth §7).
struct ImportOfUsers: AccountWork {
    private let call: NativeCall?
    /// Where each imported row was in the request.
    private let indices: [Int]
    /// The rows that are refused without a call, by their index.
    private let refused: [Int: String]

    /// Throws `AuthFault` for what refuses the whole request.
    init(_ body: AccountBody, _ identity: NativeCall.Identity, _ limits: AccountLimits) throws(AuthFault) {
        let rows = try body.objects("users")
        guard !rows.isEmpty else { throw AuthFault("MISSING_USER_ACCOUNT") }
        guard rows.count <= limits.accountsMax else { throw AuthFault("MAXIMUM_USER_COUNT_EXCEEDED") }
        var taken: [Auth.Users.Row] = []
        var indices: [Int] = []
        var refused: [Int: String] = [:]
        for (index, row) in rows.enumerated() {
            let read = try ImportedRow(row)
            if let problem = read.problem {
                refused[index] = problem
            } else {
                taken.append(read.row)
                indices.append(index)
            }
        }
        try Self.refuseRepeated(taken)
        var request = Auth.Users.Import(users: taken)
        try Self.readHash(body, &request)
        request.allowOverwrite = try body.flag("allowOverwrite")
        self.indices = indices
        self.refused = refused
        call = taken.isEmpty ? nil : NativeCall(request, identity)
    }

    private static func readHash(_ body: AccountBody, _ request: inout Auth.Users.Import) throws(AuthFault) {
        if let name = try body.filled("hashAlgorithm") {
            guard let algorithm = Auth.HashAlgorithm(rawValue: name) else { throw AuthFault("INVALID_HASH_ALGORITHM") }
            request.hashAlgorithm = algorithm
        }
        request.signerKey = try body.filled("signerKey")
        request.saltSeparator = try body.filled("saltSeparator")
        request.rounds = try body.count("rounds")
        request.memoryCost = try body.count("memoryCost")
        request.cpuMemCost = try body.count("cpuMemCost")
        request.blockSize = try body.count("blockSize")
        request.parallelization = try body.count("parallelization")
        request.dkLen = try body.count("dkLen")
        let orders = ["UNSPECIFIED_ORDER", "SALT_AND_PASSWORD", "PASSWORD_AND_SALT"]
        request.passwordHashOrder = try body.choice("passwordHashOrder", among: orders)
            .flatMap(Auth.PasswordHashOrder.init(rawValue:))
    }

    /// Names that two rows have. Throws `AuthFault`.
    private static func refuseRepeated(_ rows: [Auth.Users.Row]) throws(AuthFault) {
        if let uid = repeated(rows.compactMap(\.uid)) { throw AuthFault("DUPLICATE_LOCAL_ID", uid) }
        if let email = repeated(rows.compactMap { $0.email?.lowercased() }) {
            throw AuthFault("DUPLICATE_EMAIL", email)
        }
        var seen: Set<[String]> = []
        for entry in rows.flatMap({ $0.providerUserInfo ?? [] })
        where !seen.insert([entry.providerId, entry.rawId]).inserted {
            throw AuthFault("DUPLICATE_RAW_ID", "Provider id(\(entry.providerId)), Raw id(\(entry.rawId))")
        }
    }

    private static func repeated(_ names: [String]) -> String? {
        var seen: Set<String> = []
        return names.first { !seen.insert($0).inserted }
    }

    mutating func begin() throws(AuthFault) -> AccountExchange.Step {
        guard let call else { return .respond(Self.response(refused)) }
        return .call(call)
    }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        var messages = refused
        for error in try result.result(of: Auth.Users.Import.self).errors where indices.indices.contains(error.index) {
            messages[indices[error.index]] = Self.message(error)
        }
        return .respond(Self.response(messages))
    }

    private static func response(_ messages: [Int: String]) -> AccountResponse {
        var members: JSONObject = ["kind": "identitytoolkit#UploadAccountResponse"]
        if !messages.isEmpty {
            members["error"] = .array(
                messages.sorted { $0.key < $1.key }.map {
                    ["index": .number(Double($0.key)), "message": .string($0.value)]
                })
        }
        return AccountResponse(members)
    }

    /// Firebase's texts for refused rows.
    private static func message(_ error: Auth.Users.Import.RowError) -> String {
        switch error.reason {
        case "MISSING_LOCAL_ID": "localId is missing"
        case "INVALID_LOCAL_ID": "localId is invalid"
        case "DUPLICATE_LOCAL_ID": "localId belongs to an existing account - can not overwrite."
        case "INVALID_EMAIL": "email is invalid"
        case "EMAIL_EXISTS": "email exists in other account in database"
        case "INVALID_PHONE_NUMBER": "phone number format is invalid"
        case "PHONE_NUMBER_EXISTS": "phone number exists in other account in database"
        case "FEDERATED_USER_ID_ALREADY_LINKED": "raw id exists in other account in database"
        case "INVALID_CLAIMS": "Invalid custom claims provided."
        case "CLAIMS_TOO_LARGE": "Custom claims provided are too large."
        case "FORBIDDEN_CLAIM": "Custom claims provided include a reserved claim."
        default: error.message
        }
    }
}

/// A row of `batchCreate`.
private struct ImportedRow {
    private(set) var row = Auth.Users.Row()
    /// Why it is refused without a call.
    private(set) var problem: String?

    /// Throws `AuthFault` for a member of another type.
    init(_ body: AccountBody) throws(AuthFault) {
        row.uid = try body.filled("localId")
        row.email = try body.filled("email")
        row.emailVerified = try body.flag("emailVerified")
        row.displayName = try body.filled("displayName")
        row.photoUrl = try body.filled("photoUrl")
        row.phoneNumber = try body.filled("phoneNumber")
        row.disabled = try body.flag("disabled")
        row.customAttributes = try body.filled("customAttributes")
        row.createdAt = try body.integer("createdAt")
        row.lastLoginAt = try body.integer("lastLoginAt")
        row.passwordHash = try body.filled("passwordHash")
        row.salt = row.passwordHash == nil ? nil : try body.filled("salt")
        row.initialEmail = try body.filled("initialEmail")
        row.emailLinkSignin = try body.flag("emailLinkSignin")
        row.customAuth = try body.flag("customAuth")
        if row.uid == nil { problem = "localId is missing" }
        if try body.filled("rawPassword") != nil, row.passwordHash == nil {
            problem = "rawPassword is not supported; create the account with its password instead"
        }
        if try body.filled("tenantId") != nil {
            problem = "Tenant id in userInfo does not match the tenant id in request."
        }
        if try !body.objects("mfaInfo").isEmpty { problem = "Second factor not supported." }
        try readProviders(body)
    }

    private mutating func readProviders(_ body: AccountBody) throws(AuthFault) {
        let entries = try body.objects("providerUserInfo")
        guard !entries.isEmpty else { return }
        var identities: [Auth.Account.Provider] = []
        for entry in entries {
            let provider = try entry.filled("providerId")
            // Made from the address and the number.
            if provider == "password" || provider == "phone" { continue }
            guard let provider, let rawId = try entry.filled("rawId") else {
                problem = "federatedId or (providerId & rawId) is required"
                continue
            }
            var identity = Auth.Account.Provider(providerId: provider, rawId: rawId)
            identity.email = try entry.filled("email")
            identity.displayName = try entry.filled("displayName")
            identity.photoUrl = try entry.filled("photoUrl")
            identities.append(identity)
        }
        row.providerUserInfo = identities
    }
}
