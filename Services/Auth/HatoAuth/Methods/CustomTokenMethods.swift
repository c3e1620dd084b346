import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage

/// `auth.customToken.…` and `auth.signInWithCustomToken`: sessions that a trusted server asks for.
struct CustomTokenMethods: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.CustomToken.Create.self, in: &router) { methods, request, _ in
            try await methods.createToken(request)
        }
        handle(Auth.CustomToken.Signers.Set.self, in: &router) { methods, request, _ in
            try await methods.setSigner(request)
        }
        handle(Auth.CustomToken.Signers.List.self, in: &router) { methods, request, _ in
            try await methods.signers(request)
        }
        handle(Auth.CustomToken.Signers.Remove.self, in: &router) { methods, request, _ in
            try await methods.removeSigner(request)
        }
        handle(Auth.SignInWithCustomToken.self, in: &router) { try await $0.signIn($1, $2) }
    }

    // MARK: Making tokens

    /// The entry of the audit is durable before the token is sent.
    func createToken(_ request: Auth.CustomToken.Create) async throws -> Auth.CustomToken.Create.Result {
        let result = try makeToken(request)
        if configuration.keepAuditDays > 0 {
            _ = try await service.write { $0.audit(.customTokenCreated, of: request.uid) }
        }
        return result
    }

    func makeToken(_ request: Auth.CustomToken.Create) throws -> Auth.CustomToken.Create.Result {
        var problems = UserID.problem(with: request.uid).map { [$0] } ?? []
        let limits = configuration.limits
        if let claims = request.claims,
            let problem = IDTokenClaims.problem(with: claims, bytesMax: limits.customAttributesCharactersMax)
        {
            problems.append(Self.field(problem, limits))
        }
        try AccountChecks.refuse(problems)
        guard let key = service.ring.current.key else { throw SigningKeyRing.Problem.incomplete }
        let issuer = verifier.issuer
        let issuedAt = environment.now() / 1000
        // No longer than an ID token: its key stays published that long.
        let lifetime = min(CustomTokenVerifier.lifetimeMax, configuration.tokenLifetimeSeconds)
        var claims: JSONObject = [
            "iss": .string(issuer), "sub": .string(issuer), "aud": .string(CustomTokenVerifier.audience),
            "iat": .number(Double(issuedAt)), "exp": .number(Double(issuedAt + lifetime)),
            "uid": .string(request.uid),
        ]
        claims["claims"] = request.claims.map { .object($0) }
        return Auth.CustomToken.Create.Result(token: try key.sign(claims, type: CustomTokenVerifier.type))
    }

    private static func field(_ problem: IDTokenClaims.ClaimsProblem, _ limits: AuthLimits) -> FieldProblem {
        switch problem {
        case .reserved(let name): FieldProblem("claims", "FORBIDDEN_CLAIM", "The claim \(name) is reserved")
        case .tooLarge:
            FieldProblem(
                "claims", "CLAIMS_TOO_LARGE",
                "The claims should have at most \(limits.customAttributesCharactersMax) bytes as JSON")
        case .tooDeep:
            FieldProblem(
                "claims", "INVALID_CLAIMS",
                "The claims should have at most \(TokenVerifier.claimsDepthMax) levels")
        }
    }

    // MARK: Signers

    func setSigner(_ request: Auth.CustomToken.Signers.Set) async throws -> Auth.CustomToken.Signer {
        var problems: [FieldProblem] = []
        var email = ""
        do throws(FieldProblem) { email = try AccountFormPolicy(configuration).email(request.email) } catch {
            problems.append(error)
        }
        var key: SignerKey?
        do throws(FieldProblem) { key = try SignerKey(pem: request.publicKey) } catch { problems.append(error) }
        guard problems.isEmpty, let key else { throw AuthError.invalidFields(problems) }
        let signer = SignerRecord(
            email: email, publicKey: key.pem, keyBits: key.bits, createdAt: environment.now())
        return try await service.write { [countMax = configuration.limits.signersMax] rows in
            if try SignerRows.find(signer.email, in: rows) == nil, try SignerRows.has(countMax, in: rows) {
                throw AuthError.token(.tooManySigners)
            }
            SignerRows.put(signer, in: rows)
            rows.audit(.administered, reason: signer.email)
            return signer.signer
        }.outcome
    }

    func signers(_ request: Auth.CustomToken.Signers.List) async throws -> Auth.CustomToken.Signers.List.Result {
        let limit = request.limit ?? Self.pageMax
        guard (1...Self.pageMax).contains(limit) else { throw Self.wrongPage("limit", "from 1 to \(Self.pageMax)") }
        if let after = request.after {
            guard after.utf8.count <= configuration.limits.emailBytesMax else {
                throw Self.wrongPage("after", "the `after` of the previous page")
            }
        }
        return try await store.read { rows in
            let signers = try SignerRows.page(after: request.after, limit: limit + 1, in: rows)
            return Auth.CustomToken.Signers.List.Result(
                signers: signers.prefix(limit).map(\.signer),
                after: signers.count > limit ? signers[limit - 1].email : nil)
        }
    }

    func removeSigner(_ request: Auth.CustomToken.Signers.Remove) async throws -> Empty {
        let email = EmailAddress.normalised(request.email, bytesMax: configuration.limits.emailBytesMax)
        _ = try await service.write { rows in
            guard let email, try SignerRows.find(email, in: rows) != nil else {
                throw AuthError.token(.signerNotFound)
            }
            SignerRows.delete(email, in: rows)
            rows.audit(.administered, reason: email)
        }
        return Empty()
    }

    private static let pageMax = 1_000

    private static func wrongPage(_ parameter: String, _ right: String) -> AuthError {
        .invalidFields([FieldProblem(parameter, "INVALID_PAGE_SELECTION", "\(parameter) should be \(right)")])
    }

    // MARK: Signing in

    private var verifier: CustomTokenVerifier {
        let limits = configuration.limits
        return CustomTokenVerifier(
            project: configuration.project, bytesMax: limits.idTokenBytesMax,
            claimsBytesMax: limits.customAttributesCharactersMax)
    }

    func signIn(_ request: Auth.SignInWithCustomToken, _ origin: CallOrigin) async throws -> Auth.Session {
        guard !request.token.isEmpty else { throw AuthError.token(.missingCustomToken) }
        let newSession = try service.newSession(request.label, origin)
        let (granted, isNewUser) = try await enter(newSession, request.token, from: origin.address)
        if isNewUser { metrics.count(.signedUp) }
        return try service.session(granted, newSession.token, isNewUser: isNewUser)
    }

    private func enter(
        _ newSession: AuthService.NewSession, _ text: String, from address: ClientAddress?
    ) async throws -> (AuthService.Granted, isNewUser: Bool) {
        var uid: String?
        do {
            try attempts.admit(.signIn, from: address)
            let token = try await verify(text)
            uid = token.uid
            return try await begin(newSession, token)
        } catch {
            service.auditWriter.signInFailed(error, uid: uid)
            throw error
        }
    }

    private func verify(_ text: String) async throws -> CustomTokenVerifier.Verified {
        let verifier = verifier
        let parsed = try verifier.parse(text)
        switch parsed.issuer {
        case .thisService(let kid):
            let now = environment.now()
            let key = service.ring.key(kid, now: now, lifetime: configuration.tokenLifetimeSeconds * 1000)
            return try verifier.verify(parsed, ownKey: key, now: now)
        case .serviceAccount(let email):
            let signer = try await store.read { try SignerRows.find(email, in: $0) }
            return try verifier.verify(
                parsed, signer: try signer.map { try SignerKey(pem: $0.publicKey) }, now: environment.now())
        }
    }

    /// Begins the session of a valid token, and makes the account if there is none.
    private func begin(
        _ newSession: AuthService.NewSession, _ token: CustomTokenVerifier.Verified
    ) async throws -> (AuthService.Granted, isNewUser: Bool) {
        let sessionsMax = configuration.limits.sessionsPerAccountMax
        return try await service.write { [environment] rows in
            let now = environment.now()
            let before = try AccountRows.find(token.uid, in: rows)
            guard before?.disabled != true else { throw AuthError.userDisabled }
            var account = try before ?? AccountRows.newAccount(token.uid, at: now, in: rows)
            let former = try rows.row(AuthKey.formerAccount(token.uid)).map { try FormerAccountRecord($0) }
            try Self.refuseEnded(token, of: account, after: former)
            let surplus = try SessionRows.surplus(of: account.uid, countMax: sessionsMax, in: rows)
            account.signsInWithCustomToken = true
            account.lastLoginAt = now
            account.networks = newSession.device.mark.added(to: account.networks)
            var record = newSession.record(of: account, now: now)
            (record.provider, record.claims) = (.custom, token.claims)
            AccountRows.put(account, replacing: before, in: rows)
            for id in surplus { SessionRows.delete(id, of: account.uid, in: rows) }
            SessionRows.put(record, in: rows)
            rows.audit(.signedIn, of: record, signer: token.signer)
            return (AuthService.Granted(account: account, record: record, at: now), before == nil)
        }.outcome
    }

    /// What ends the sessions of a user ends the custom tokens from before, too: a thief who has one would be in again.
    /// Clocks of two machines differ by some seconds, and a server may make the token before it makes the account.
    ///
    /// - Parameter former: the last account that had the uid, if it was deleted within a day.
    private static func refuseEnded(
        _ token: CustomTokenVerifier.Verified, of account: AccountRecord, after former: FormerAccountRecord?
    ) throws(AuthError) {
        let ended = account.validSince > account.createdAt / 1000 ? account.validSince : 0
        guard token.issuedAt + clockLeeway >= max(ended, former?.validSince ?? 0) else {
            throw .token(.invalidCustomToken("the sessions of its user were ended after it was made"))
        }
    }

    /// Seconds.
    private static let clockLeeway: Int64 = 5
}
