import HatoModel
import HatoRPC
import HatoStorage

/// Finds the code that a caller presents. The same for all methods that take one.
struct CodeChecker: Sendable {
    let service: AuthService
    let code: PresentedCode
    /// The address that got the mail, as the caller says; nil: the caller says none.
    let address: String?
    /// The types that the method takes.
    let types: [Auth.CodeType]

    /// Throws for a text that is no code, for digits without an address, and for an address that is none.
    init(_ service: AuthService, code: String, email: String?, types: [Auth.CodeType]) throws(AuthError) {
        self.service = service
        self.types = types
        guard let code = PresentedCode(code, digitCount: service.configuration.codeDigits) else { throw .invalidCode }
        self.code = code
        do {
            address = try email.map { (text) throws(FieldProblem) in
                try AccountFormPolicy(service.configuration, takesStored: true).email(text)
            }
        } catch { throw .invalidFields([error]) }
        if case .digits = code, address == nil {
            throw .invalidFields([
                FieldProblem("email", "MISSING_EMAIL", "The e-mail address is missing: digits are for one address")
            ])
        }
    }

    /// What a code turns out to be.
    enum Outcome {
        case right(CodeRecord)
        /// Digits that count as a try for these codes.
        case wrongDigits([CodeRecord])
        case refused(AuthError)
    }

    /// Reads only.
    func find(in rows: some StoreReading, for caller: Caller, now: Int64) throws -> Outcome {
        let secrets = service.codeSecrets
        switch code {
        case .long(let id, let secret):
            guard let record = try CodeRows.find(id, in: rows), secrets.isRight(secret, of: record) else {
                return .refused(.invalidCode)
            }
            guard record.isFor(caller) else { return .refused(.invalidCode) }
            guard types.contains(record.type) else { return .refused(.codeOfAnotherType) }
            guard now < record.expiresAt else { return .refused(.expiredCode) }
            guard address == nil || address == record.to || address == record.email else {
                return .refused(.codeOfAnotherAddress)
            }
            return .right(record)
        case .digits(let digits):
            guard let address else { return .refused(.invalidCode) }
            let candidates = try types.flatMap { try CodeRows.withDigits($0, to: address, in: rows) }
                .filter { $0.digitsUntil != nil && $0.tries < CodeRecord.triesMax && $0.isFor(caller) }
            func isLive(_ code: CodeRecord) -> Bool { now < code.digitsUntil ?? 0 }
            // All of them are compared, whichever is right.
            let right = candidates.filter { secrets.isRight(digits: digits, of: $0) }
            guard !right.isEmpty else { return .wrongDigits(candidates.filter(isLive)) }
            guard let record = right.first(where: isLive) else { return .refused(.expiredCode) }
            return .right(record)
        }
    }

    /// Counts a try. It writes as much for an address without a code.
    static func count(_ candidates: [CodeRecord], in rows: some StoreWriting) {
        guard !candidates.isEmpty else {
            let nothing = CodeRecord(id: [], type: .verifyEmail, to: "", createdAt: 0, expiresAt: 0)
            rows.putRow(AuthKey.noCode(0), nothing.bytes)
            return
        }
        for var record in candidates {
            record.tries += 1
            rows.putRow(AuthKey.code(record.id), record.bytes)
        }
    }

    /// Runs `body` in a transaction with the code, if it is right. Wrong digits are counted, in the store and among the
    /// failures of the address. Throws `AuthError` otherwise, and what `body` throws.
    ///
    /// A code for the account of another user is none for a user: a person who waits for a code of its own must not
    /// confirm the account of the one who requested this one.
    func take<Outcome: Sendable>(
        from origin: CallOrigin, _ body: @escaping @Sendable (CodeRecord, AuthTransaction) throws -> Outcome
    ) async throws -> Outcome {
        try service.attempts.admit(.signIn, from: origin.address)
        let target = try await target(of: origin)
        if let target { try service.attempts.beginGuess(target, from: origin.address) }
        var isRight: Bool?
        defer { if let target { service.attempts.endGuess(target, from: origin.address, isRight: isRight) } }
        let taken = try await service.write { [self] rows -> Result<Outcome, AuthError> in
            switch try find(in: rows, for: origin.caller, now: service.environment.now()) {
            case .right(let record): return .success(try body(record, rows))
            case .refused(let error): return .failure(error)
            case .wrongDigits(let candidates):
                Self.count(candidates, in: rows)
                return .failure(.invalidCode)
            }
        }.outcome
        switch taken {
        case .success: isRight = true
        case .failure(.invalidCode): isRight = false
        case .failure: isRight = nil
        }
        return try taken.get()
    }

    /// Runs `body`, whose errors are failures for the audit.
    func audited<Outcome>(_ body: () async throws -> Outcome) async throws -> Outcome {
        do { return try await body() } catch {
            service.auditWriter.signInFailed(error, name: address)
            throw error
        }
    }

    /// Digits can be guessed; the long form cannot. Guesses from elsewhere do not keep the owner out in a network from
    /// which the account has signed in.
    private func target(of origin: CallOrigin) async throws -> AttemptLedger.Target? {
        guard case .digits = code, let address else { return nil }
        let account = try await service.store.read { try AccountRows.find(.email(address), in: $0) }
        let isKnown = NetworkMark(origin.address, key: service.refreshKey).isContained(in: account?.networks)
        let network = isKnown ? origin.address?.network : origin.address?.site
        return AttemptLedger.Target(account: "code:\(address)", network: network ?? "", isKnown: isKnown)
    }
}

extension CodeRecord {
    /// Whether a caller may use it: a user one for its own account only, where it concerns the account of a user.
    fileprivate func isFor(_ caller: Caller) -> Bool {
        guard case .user(let user) = caller, type == .verifyEmail || type == .changeEmail else { return true }
        return uid == user.uid
    }
}
