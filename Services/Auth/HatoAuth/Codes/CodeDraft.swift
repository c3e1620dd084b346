import HatoModel
import HatoStorage

/// A code and its mail that are not written yet.
struct CodeDraft: Sendable {
    var code: CodeRecord
    var mail: MailRecord
    let links: CodeLinks

    /// Writes the code for an account or an address, and its mail. Returns the code. It reads first and writes after.
    func issue(
        to subject: CodeSubject.Resolved, mailed isMailed: Bool, _ queue: inout MailQueueChange,
        in rows: AuthTransaction
    ) throws -> CodeRecord {
        let (code, mail) = completed(to: subject.to, subject.account)
        let earlier = try CodeRows.find(code.type, to: code.to, of: code.uid, in: rows)
        CodeRows.put(code, replacing: earlier, in: rows)
        if isMailed {
            try queue.add(mail, in: rows)
            queue.finish(in: rows)
        }
        return code
    }

    /// Writes as much as `issue`, under keys that are always the same.
    func issueNothing(_ subject: CodeSubject, _ queue: MailQueueChange, in rows: AuthTransaction) throws {
        let (code, mail) = completed(to: subject.address ?? "", nil)
        _ = try CodeRows.find(code.type, to: code.to, in: rows)
        try queue.requireRoom(for: mail)
        let written = [code.bytes, code.id, mail.bytes, [], RecordCodec.encode(queue.figures)]
        for (index, bytes) in written.enumerated() { rows.putRow(AuthKey.noCode(index), bytes) }
    }

    private func completed(to address: String, _ account: AccountRecord?) -> (CodeRecord, MailRecord) {
        var (code, mail) = (code, mail)
        (code.to, code.uid, code.email, code.validSince) = (address, account?.uid, account?.email, account?.validSince)
        mail.to = address
        // Anyone can make accounts with addresses of others, or of hosts that answer slowly.
        mail.hasAccount = account?.emailVerified == true && account?.email == address
        // The request has checked the page.
        let hasLink = links.actionUrl != nil || mail.continueUrl != nil
        mail.until = min(mail.end(with: code, hasLink: hasLink), code.createdAt + MailRetryPolicy.tryFor)
        return (code, mail)
    }
}

extension AuthService {
    /// A code of a type, with its mail, that has no address yet.
    func newCode(_ type: Auth.CodeType, locale: String, continueUrl: String?) -> CodeDraft {
        let now = environment.now()
        var code = CodeRecord(
            id: environment.randomBytes(CodeRecord.idBytes), type: type, to: "", createdAt: now,
            expiresAt: now + CodeLifetimes.long(type))
        if type == .changeEmail { code.locale = locale }
        if CodeLifetimes.hasDigits(type) { code.digitsUntil = now + CodeLifetimes.digits }
        var mail = MailRecord(
            id: MailRecord.id(at: now, random: environment.randomBytes(8)), code: code.id, to: "", type: type,
            locale: locale, createdAt: now, until: now)
        mail.continueUrl = continueUrl
        mail.nextAt = now
        return CodeDraft(code: code, mail: mail, links: configuration.links)
    }
}

extension MailRecord {
    /// When the mail is of no use any more: a link is good for longer than digits.
    func end(with code: CodeRecord, hasLink: Bool) -> Int64 {
        hasLink ? code.expiresAt : code.digitsUntil ?? code.expiresAt
    }
}
