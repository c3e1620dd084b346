import Foundation
import HatoIdentity
import HatoModel

/// The verification of ID tokens as every service does it, in this process and on one thread, without a transport.
///
/// The seconds are those of the processor: what one core does, whatever else the machine does meanwhile.
struct VerifyBench: Sendable {
    /// More than the authenticator remembers: each is forgotten when its turn comes again.
    private static let different = 30_000
    private static let remembered = 1_000

    var settings: BenchSettings

    func measure(_ table: inout Table) async throws {
        let key = SigningKey(kid: "bench")
        let tokens = try (0..<Self.different).map { try key.sign(Self.claims($0)) }
        let configuration = IdentityConfiguration()
        guard configuration.rememberedTokensMax < Self.different else {
            throw BenchError("\(Self.different) tokens are all remembered")
        }
        let authenticator = ServiceAuthenticator(
            configuration: configuration, administratorKeys: .none, fetchKeys: nil)
        let verificationKey = key.verificationKey
        authenticator.replaceKeys([verificationKey.jwk])
        let known = Array(tokens.prefix(Self.remembered))
        let signed = try known.map { try SignedToken($0, bytesMax: configuration.tokenBytesMax) }
        var (next, alone, first): (Int, [Double], [Double]) = (0, [], [])
        for _ in 0..<settings.windows {
            // In turn: no token is verified faster than its signature.
            alone.append(
                try await rate { number in
                    let token = signed[number % signed.count]
                    guard verificationKey.isValid(token.signature, of: token.signedInput) else {
                        throw BenchError("a signature is not valid")
                    }
                })
            first.append(
                try await rate { _ in
                    _ = try await authenticator.authenticate(tokens[next])
                    next = (next + 1) % tokens.count
                })
        }
        table.add(
            Table.Row(what: "auth: ES256 signatures checked alone, one core", value: alone.median, unit: "/s"))
        var row = Table.Row(
            what: "auth: ID tokens verified for the first time, one core", value: first.median, unit: "/s",
            goals: [Goal(.value, .atLeast(20_000))])
        row.ratio = (first.ratio(to: alone), "signatures alone")
        table.add(row)
        for token in known { _ = try await authenticator.authenticate(token) }
        var again: [Double] = []
        for _ in 0..<settings.windows {
            again.append(
                try await rate { number in
                    guard authenticator.remembered(known[number % known.count]) != nil else {
                        throw BenchError("a verified token is not remembered")
                    }
                })
        }
        table.add(
            Table.Row(
                what: "auth: ID tokens remembered, one core", value: again.median, unit: "/s",
                goals: [Goal(.value, .atLeast(400_000))]))
    }

    /// Calls a second of processor time, in one window.
    private func rate(_ body: (Int) async throws -> Void) async throws -> Double {
        let (begin, used) = (Clock.now(), Clock.processorTime())
        let end = begin + UInt64(settings.seconds * 1e9)
        var number = 0
        repeat {
            for _ in 0..<100 {
                try await body(number)
                number += 1
            }
        } while Clock.now() < end
        return Double(number) / (Double(Clock.processorTime() - used) / 1e9)
    }

    /// As auth writes them for an account with an e-mail address.
    private static func claims(_ number: Int) -> JSONObject {
        let now = Double(WallClock.milliseconds() / 1_000)
        let uid = JSONValue.string("q3Vd0lYxkTg7Zb1mNc5RwE\(100_000 + number)")
        let email = JSONValue.string("masuo\(number)@example.com")
        return [
            "name": "マスオさん", "iss": .string(IdentityConfiguration.issuer(of: "hato")), "aud": "hato",
            "auth_time": .number(now), "sid": .string("k3Yt9wQz7LmVb2Nc\(number)"), "user_id": uid, "sub": uid,
            "iat": .number(now), "exp": .number(now + 3_600), "email": email, "email_verified": false,
            "firebase": ["identities": ["email": .array([email])], "sign_in_provider": "password"],
        ]
    }
}
