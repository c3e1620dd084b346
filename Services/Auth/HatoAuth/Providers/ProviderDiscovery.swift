import HatoModel

/// Fetches the keys of a provider: its discovery document (OpenID Connect Discovery §4) says where they are.
struct ProviderDiscovery: Sendable {
    /// Why there are no keys.
    struct Failure: Error, Hashable, CustomStringConvertible {
        var description: String

        init(_ description: String) { self.description = description }
    }

    /// The bytes of a document; its errors are for people.
    var fetch: @Sendable (_ url: String) async throws -> [UInt8]

    /// Throws `Failure`.
    func keys(of issuer: String) async throws(Failure) -> ProviderKeySet {
        let url = (issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer) + "/.well-known/openid-configuration"
        let document = try await document(at: url)
        guard let named = document["issuer"]?.string, named == issuer else {
            throw Failure("the issuer in \(url) is another one")
        }
        let isSecure = issuer.hasPrefix("https://")
        guard let address = document["jwks_uri"]?.string, address.hasPrefix("https://") || !isSecure else {
            throw Failure("\(url) has no jwks_uri with https")
        }
        let keys = try await self.document(at: address)
        do { return try ProviderKeySet(keys) } catch {
            throw Failure("the keys at \(Self.shown(address)): \(error.message)")
        }
    }

    private func document(at url: String) async throws(Failure) -> JSONValue {
        let bytes: [UInt8]
        do { bytes = try await fetch(url) } catch {
            throw Failure("\(Self.shown(url)): \(Self.shown("\(error)"))")
        }
        guard let json = try? JSONParser.parse(bytes, depth: 16), case .object = json else {
            throw Failure("\(Self.shown(url)) is no JSON object")
        }
        return json
    }

    private static let shownMax = 200

    /// What comes from an issuer, for errors and the log: short, and without characters that change what is around it.
    private static func shown(_ text: String) -> String {
        let scalars = text.unicodeScalars.lazy.prefix(shownMax + 1).map { scalar -> Unicode.Scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: "?"
            default: scalar
            }
        }
        return String(String.UnicodeScalarView(scalars)).shortened(to: shownMax)
    }
}
