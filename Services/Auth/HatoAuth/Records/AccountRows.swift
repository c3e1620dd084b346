import HatoModel
import HatoStorage

/// The name of an account in a sign-in or an administrator's request.
enum AccountName: Sendable, Hashable {
    case uid(String)
    /// Normalised, as it is stored.
    case email(String)
    case username(String)
    /// In the form of E.164.
    case phoneNumber(String)
    case identity(provider: String, uid: String)
}

/// The accounts of a store with their unique names. It reads first and writes after, as every transaction must.
enum AccountRows {
    static func find(_ uid: String, in rows: some StoreReading) throws -> AccountRecord? {
        try rows.row(AuthKey.account(uid)).map { try AccountRecord($0) }
    }

    static func find(_ name: AccountName, in rows: some StoreReading) throws -> AccountRecord? {
        let pointer: [UInt8]
        switch name {
        case .uid(let uid): return try find(uid, in: rows)
        case .email(let email): pointer = AuthKey.email(email)
        case .username(let username): pointer = AuthKey.username(username)
        case .phoneNumber(let number): pointer = AuthKey.phoneNumber(number)
        case .identity(let provider, let uid): pointer = AuthKey.identity(provider, uid)
        }
        guard let uid = try rows.row(pointer) else { return nil }
        guard let account = try find(String(decoding: uid, as: UTF8.self), in: rows) else {
            throw RecordError(record: "account", problem: "a name leads to no account")
        }
        return account
    }

    /// Throws when another account has one of the names of `account`. `before` is the account that it replaces, nil for
    /// a new one.
    static func checkNames(of account: AccountRecord, replacing before: AccountRecord?, in rows: some StoreReading)
        throws
    {
        if before == nil, try rows.row(AuthKey.account(account.uid)) != nil { throw AuthError.uidExists }
        if let email = account.email, email != before?.email, try rows.row(AuthKey.email(email)) != nil {
            throw AuthError.emailExists
        }
        if let username = account.username, username != before?.username,
            try rows.row(AuthKey.username(username)) != nil
        {
            throw AuthError.usernameExists
        }
        if let number = account.phoneNumber, number != before?.phoneNumber,
            try rows.row(AuthKey.phoneNumber(number)) != nil
        {
            throw AuthError.phoneNumberExists
        }
        for key in identityKeys(of: account).subtracting(identityKeys(of: before)) where try rows.row(key) != nil {
            throw AuthError.identityHasAccount
        }
    }

    private static func identityKeys(of account: AccountRecord?) -> Set<[UInt8]> {
        Set((account?.identities ?? []).map { AuthKey.identity($0.provider, $0.uid) })
    }

    /// Writes an account whose names were checked in the same transaction.
    static func put(_ account: AccountRecord, replacing before: AccountRecord?, in rows: AuthTransaction) {
        let uid = Array(account.uid.utf8)
        if before?.email != account.email {
            if let old = before?.email { rows.deleteRow(AuthKey.email(old)) }
            if let new = account.email { rows.putRow(AuthKey.email(new), uid) }
        }
        if before?.username != account.username {
            if let old = before?.username { rows.deleteRow(AuthKey.username(old)) }
            if let new = account.username { rows.putRow(AuthKey.username(new), uid) }
        }
        if before?.phoneNumber != account.phoneNumber {
            if let old = before?.phoneNumber { rows.deleteRow(AuthKey.phoneNumber(old)) }
            if let new = account.phoneNumber { rows.putRow(AuthKey.phoneNumber(new), uid) }
        }
        let (oldKeys, newKeys) = (identityKeys(of: before), identityKeys(of: account))
        for key in oldKeys.subtracting(newKeys) { rows.deleteRow(key) }
        for key in newKeys.subtracting(oldKeys) { rows.putRow(key, uid) }
        rows.putRow(AuthKey.account(account.uid), account.bytes)
        for event in AccountEvent.events(from: before, to: account) { rows.record(event) }
        guard let before else { return rows.countAccount(1) }
        audit(account, replacing: before, in: rows)
    }

    /// Which members have changed, and which identities have come and gone.
    private static func audit(_ account: AccountRecord, replacing before: AccountRecord, in rows: AuthTransaction) {
        let changed = account.changedMembers(from: before)
        if !changed.isEmpty { rows.changed(changed, of: account.uid) }
        func audit(_ type: Auth.Audit.EntryType, _ identity: LinkedIdentity) {
            var record = AuditRecord(type, of: account.uid)
            record.provider = identity.provider
            rows.audit(record)
        }
        func has(_ account: AccountRecord, _ identity: LinkedIdentity) -> Bool {
            account.identities.contains { ($0.provider, $0.uid) == (identity.provider, identity.uid) }
        }
        for identity in before.identities where !has(account, identity) { audit(.unlinked, identity) }
        for identity in account.identities where !has(before, identity) { audit(.linked, identity) }
    }

    /// A blank account with a uid that another account may have had: it takes no token of that one.
    static func newAccount(_ uid: String, at now: Int64, in rows: some StoreReading) throws -> AccountRecord {
        var account = AccountRecord(uid: uid, createdAt: now)
        if let former = try rows.row(AuthKey.formerAccount(uid)).map({ try FormerAccountRecord($0) }) {
            account.validSince = max(account.validSince, former.validSince)
        }
        return account
    }

    /// Deletes an account at `now`, in milliseconds since 1970.
    static func delete(_ account: AccountRecord, at now: Int64, in rows: AuthTransaction) {
        let former = FormerAccountRecord(account, now: now)
        rows.putRow(AuthKey.formerAccount(account.uid), former.bytes)
        if let email = account.email { rows.deleteRow(AuthKey.email(email)) }
        if let username = account.username { rows.deleteRow(AuthKey.username(username)) }
        if let number = account.phoneNumber { rows.deleteRow(AuthKey.phoneNumber(number)) }
        for key in identityKeys(of: account) { rows.deleteRow(key) }
        rows.deleteRow(AuthKey.account(account.uid))
        rows.countAccount(-1)
        var event = AccountEvent(.deleted, of: account.uid)
        event.since = former.validSince
        rows.record(event)
    }

    /// At most `limit` accounts after `uid`, in the order of the uids' bytes, and whether there are more.
    static func page(after uid: String?, limit: Int, in rows: some StoreReading) throws -> (
        accounts: [AccountRecord], hasMore: Bool
    ) {
        var accounts: [AccountRecord] = []
        var hasMore = false
        try rows.rows(uid.map { AuthKey.accounts(after: $0) } ?? AuthKey.accounts) { _, value in
            if accounts.count == limit {
                hasMore = true
                return false
            }
            accounts.append(try AccountRecord(value))
            return true
        }
        return (accounts, hasMore)
    }
}
