import HatoModel
import HatoStorage

/// The end of an account, with what goes with it: its sessions and its codes.
struct AccountDeletion {
    private let account: AccountRecord
    private let sessions: [[UInt8]]
    private let codes: [CodeRecord]

    /// Reads only. Throws the errors of the store.
    init(_ account: AccountRecord, in rows: some StoreReading) throws {
        self.account = account
        sessions = try SessionRows.ids(of: account.uid, in: rows)
        var codes = try CodeRows.recoveries(of: account.uid, in: rows)
        if let email = account.email {
            for type in [Auth.CodeType.verifyEmail, .passwordReset, .signIn, .invite] {
                // Without their code no mail of them is sent.
                if let code = try CodeRows.find(type, to: email, in: rows), code.uid == account.uid {
                    codes.append(code)
                }
            }
        }
        self.codes = codes
    }

    /// Writes only. `now` in milliseconds since 1970.
    func apply(at now: Int64, in rows: AuthTransaction) {
        for id in sessions { SessionRows.delete(id, of: account.uid, in: rows) }
        for code in codes { CodeRows.delete(code, in: rows) }
        AccountRows.delete(account, at: now, in: rows)
    }
}
