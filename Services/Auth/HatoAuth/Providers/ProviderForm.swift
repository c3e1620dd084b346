import HatoFetch
import HatoModel

/// Validates what administrators say of a provider.
struct ProviderForm: Sendable {
    private static let issuerBytesMax = 1_024
    private static let clientIdsMax = 50
    private static let clientIdBytesMax = 256

    /// Whether an issuer may be this machine, over plain http.
    var allowsPrivate: Bool

    /// The provider, without keys where they are to be fetched. Throws `AuthError.invalidFields` with every wrong
    /// field.
    func record(_ request: Auth.Providers.Set) throws(AuthError) -> ProviderRecord {
        var problems: [FieldProblem] = []
        if !Self.isProvider(request.id) {
            problems.append(
                FieldProblem(
                    "id", "INVALID_PROVIDER_ID",
                    "The id should have 3 to 64 of a-z, 0-9, - and ., the first a letter, with a . inside, such as "
                        + "google.com or oidc.work"))
        }
        let issuer = request.issuer ?? ProviderTokenVerifier.knownIssuers[request.id] ?? ""
        if !isIssuer(issuer) {
            problems.append(
                FieldProblem(
                    "issuer", "INVALID_ISSUER",
                    "The issuer should be an https URL without query, at most \(Self.issuerBytesMax) bytes, such as "
                        + "https://login.example.com"))
        }
        if let problem = Self.problem(withClientIds: request.clientIds) { problems.append(problem) }
        var record = ProviderRecord(id: request.id, issuer: issuer, clientIds: request.clientIds)
        record.trustsEmail = request.trustsEmail
        record.allowsSignUp = request.allowsSignUp
        if let jwks = request.jwks, jwks != .null {
            do { record.keys = try ProviderKeySet(given: jwks) } catch {
                problems.append(FieldProblem("jwks", "INVALID_KEYS", "jwks is refused: \(error.message)"))
            }
        } else {
            record.isDiscovered = true
        }
        if !problems.isEmpty { throw .invalidFields(problems) }
        return record
    }

    /// Whether a text may be the id of a provider: with a `.`, so that it is never `password` or another way to sign
    /// in.
    static func isProvider(_ text: String) -> Bool {
        guard (3...SignInProvider.bytesMax).contains(text.utf8.count), (try? SignInProvider(text)) != nil else {
            return false
        }
        return text.contains(".") && !text.hasSuffix(".") && !text.contains("_")
    }

    private func isIssuer(_ text: String) -> Bool {
        guard text.utf8.count <= Self.issuerBytesMax, !text.contains("?"), (try? StrictURL(text)) != nil else {
            return false
        }
        return text.hasPrefix("https://") || (allowsPrivate && text.hasPrefix("http://"))
    }

    private static func problem(withClientIds ids: [String]) -> FieldProblem? {
        let isEachRight = ids.allSatisfy { id in
            (1...clientIdBytesMax).contains(id.utf8.count)
                && !id.unicodeScalars.contains { $0.properties.generalCategory == .control }
        }
        guard (1...clientIdsMax).contains(ids.count), isEachRight, Set(ids).count == ids.count else {
            return FieldProblem(
                "clientIds", "INVALID_CLIENT_ID",
                "The client ids should be 1 to \(clientIdsMax) different texts of at most \(clientIdBytesMax) bytes, "
                    + "such as [\"com.example.chat\"]")
        }
        return nil
    }
}
