import HatoModel

// A hash with its scheme in one text, in the PHC string format: `$scrypt$ln=14,r=8,p=5$<salt>$<hash>`; with
// `,keyid=<id>` behind its parameters when a pepper was mixed into the password. Those of bcrypt and Argon2 are the
// texts that all software writes; the others are named here.
extension PasswordHash {
    /// Longer texts are no hashes.
    private static let textBytesMax = 4096

    /// Nil when the text does not have the form of `text`.
    init?(_ text: String) {
        do { self = try Self.read(text) } catch { return nil }
    }

    /// Reads what `text` writes. Throws what is wrong, or what would cost too much.
    ///
    /// - Parameter memoryBytesMax: the limit of an import; nil: of what is stored.
    static func read(_ text: String, memoryBytesMax: Int? = nil) throws(HashProblem) -> PasswordHash {
        let fields = parts(text[...], "$")
        guard text.utf8.count <= textBytesMax, fields.count >= 4, fields[0].isEmpty,
            let hash = bcrypt(fields) ?? argon2(fields) ?? other(fields)
        else {
            throw HashProblem(
                "passwordHash should be a text such as $2b$10$…, $argon2id$v=19$m=65536,t=3,p=4$… or "
                    + "$scrypt$ln=14,r=8,p=5$…")
        }
        if let problem = hash.problem(memoryBytesMax: memoryBytesMax) { throw problem }
        return hash
    }

    /// Describes a cost, a key, a salt or a hash that is not right; nil when all are.
    func problem(memoryBytesMax: Int?) -> HashProblem? {
        scheme.problem(memoryBytesMax: memoryBytesMax)
            ?? scheme.problem(saltBytes: salt.count, hashBytes: hash.count)
            ?? memoryBytesMax.flatMap { _ in scheme.timeProblem(hashBytes: hash.count) }
    }

    var text: String {
        if case .bcrypt(let bcrypt) = scheme { return bcrypt.setting + String(decoding: salt + hash, as: UTF8.self) }
        let key = pepperID.map { ",\(Self.keyName)=\($0)" } ?? ""
        return "$\(scheme.name)$\(scheme.parameters)\(key)$\(Self.text(salt))$\(Self.text(hash))"
    }

    // MARK: Forms

    private static func bcrypt(_ fields: [Substring]) -> PasswordHash? {
        guard fields.count == 4, let version = Bcrypt.Version(rawValue: String(fields[1])), fields[2].utf8.count == 2,
            let cost = Int(fields[2])
        else { return nil }
        let characters = Array(fields[3].utf8)
        guard characters.count == Bcrypt.saltCharacters + Bcrypt.hashCharacters, Bcrypt.isText(characters) else {
            return nil
        }
        return PasswordHash(
            .bcrypt(Bcrypt(version: version, cost: cost)), salt: Array(characters.prefix(Bcrypt.saltCharacters)),
            hash: Array(characters.suffix(Bcrypt.hashCharacters)))
    }

    /// The version is missing in hashes of version 16.
    private static func argon2(_ fields: [Substring]) -> PasswordHash? {
        guard let kind = Argon2.Kind(rawValue: String(fields[1])), fields.count == 5 || fields.count == 6 else {
            return nil
        }
        let version = fields.count == 5 ? 16 : numbers(fields[2], ["v"])?[0]
        guard let version, [16, 19].contains(version),
            let numbers = numbers(fields[fields.count - 3], ["m", "t", "p"])
        else { return nil }
        let argon2 = Argon2(
            kind: kind, version: version, memoryKiB: numbers[0], passes: numbers[1], lanes: numbers[2])
        return decoded(.argon2(argon2), fields.suffix(2))
    }

    private static func other(_ fields: [Substring]) -> PasswordHash? {
        guard fields.count == 5 else { return nil }
        let (parameters, pepperID) = withoutKey(fields[2])
        guard let scheme = HashScheme(name: String(fields[1]), parameters), let hash = decoded(scheme, fields.suffix(2))
        else { return nil }
        if let pepperID {
            guard case .scrypt = scheme, (1...keyCharactersMax).contains(pepperID.utf8.count) else { return nil }
            return PasswordHash(scheme, salt: hash.salt, hash: hash.hash, pepperID: String(pepperID))
        }
        return hash
    }

    /// The name of the parameter for the id of a key, as the PHC string format has it.
    private static let keyName = "keyid"
    private static let keyCharactersMax = 64

    /// Parameters, and the id of a key behind them.
    private static func withoutKey(_ parameters: Substring) -> (parameters: Substring, pepperID: Substring?) {
        guard let comma = parameters.lastIndex(of: ","), parameters[comma...].hasPrefix(",\(keyName)=") else {
            return (parameters, nil)
        }
        return (parameters[..<comma], parameters[comma...].dropFirst(keyName.count + 2))
    }

    private static func decoded(_ scheme: HashScheme, _ fields: ArraySlice<Substring>) -> PasswordHash? {
        guard let salt = fields.first.flatMap(bytes), let hash = fields.last.flatMap(bytes) else { return nil }
        return PasswordHash(scheme, salt: salt, hash: hash)
    }

    /// Split by bytes: a page of accounts reads a thousand hashes, and to find characters takes most of their time.
    private static func parts(_ text: Substring, _ separator: Unicode.Scalar) -> [Substring] {
        text.utf8.split(separator: UInt8(ascii: separator), omittingEmptySubsequences: false).map(Substring.init)
    }

    /// The values of `ln=14,r=8,p=5` for these names in this order.
    fileprivate static func values(_ text: Substring, _ names: [String]) -> [Substring]? {
        let parts = parts(text, ",")
        guard parts.count == names.count, zip(parts, names).allSatisfy({ $0.hasPrefix("\($1)=") }) else { return nil }
        return zip(parts, names).map { $0.dropFirst($1.count + 1) }
    }

    fileprivate static func numbers(_ text: Substring, _ names: [String]) -> [Int]? {
        guard let values = values(text, names) else { return nil }
        let numbers = values.compactMap { Int($0) }
        return numbers.count == names.count && numbers.allSatisfy { $0 >= 0 } ? numbers : nil
    }

    // PHC uses the standard alphabet of base64, without padding.
    fileprivate static func text(_ bytes: [UInt8]) -> String { Base64.standard.encode(bytes) }
    fileprivate static func bytes(_ text: Substring) -> [UInt8]? { Base64.standard.decode(text.utf8) }
}

extension HashScheme {
    fileprivate var name: String {
        switch self {
        case .scrypt: "scrypt"
        case .standardScrypt: "standard-scrypt"
        case .firebaseScrypt: "firebase-scrypt"
        case .hmac(let digest, _, _): "hmac-\(digest.rawValue)"
        case .pbkdf2(let digest, _): "pbkdf2-\(digest.rawValue)"
        case .digest(let digest, _, _): digest.rawValue
        case .bcrypt(let bcrypt): bcrypt.version.rawValue
        case .argon2(let argon2): argon2.kind.rawValue
        }
    }

    fileprivate var parameters: String {
        switch self {
        case .scrypt(let cost), .standardScrypt(let cost): "ln=\(cost.logN),r=\(cost.r),p=\(cost.p)"
        case .firebaseScrypt(let firebase):
            "ln=\(firebase.logN),r=\(firebase.r),ss=\(PasswordHash.text(firebase.saltSeparator)),"
                + "k=\(PasswordHash.text(firebase.signerKey))"
        case .hmac(_, let key, let order): "o=\(order.rawValue),k=\(PasswordHash.text(key))"
        case .pbkdf2(_, let rounds): "i=\(rounds)"
        case .digest(_, let rounds, let order): "i=\(rounds),o=\(order.rawValue)"
        case .bcrypt(let bcrypt): "\(bcrypt.cost)"
        case .argon2(let argon2):
            "v=\(argon2.version)$m=\(argon2.memoryKiB),t=\(argon2.passes),p=\(argon2.lanes)"
        }
    }

    /// Nil for another name, or other parameters.
    fileprivate init?(name: String, _ parameters: Substring) {
        switch name {
        case "scrypt": self.init(cost: parameters) { .scrypt($0) }
        case "standard-scrypt": self.init(cost: parameters) { .standardScrypt($0) }
        case "firebase-scrypt": self.init(firebase: parameters)
        default:
            if let digest = HashDigest(rawValue: name) {
                self.init(digest, parameters)
            } else if let digest = HashDigest(name, after: "hmac-") {
                self.init(hmac: digest, parameters)
            } else if let digest = HashDigest(name, after: "pbkdf2-") {
                guard let numbers = PasswordHash.numbers(parameters, ["i"]) else { return nil }
                self = .pbkdf2(digest, rounds: numbers[0])
            } else {
                return nil
            }
        }
    }

    private init?(cost parameters: Substring, _ scheme: (ScryptCost) -> HashScheme) {
        guard let numbers = PasswordHash.numbers(parameters, ["ln", "r", "p"]) else { return nil }
        self = scheme(ScryptCost(logN: numbers[0], r: numbers[1], p: numbers[2]))
    }

    private init?(firebase parameters: Substring) {
        guard let values = PasswordHash.values(parameters, ["ln", "r", "ss", "k"]), let logN = Int(values[0]),
            let r = Int(values[1]), let separator = PasswordHash.bytes(values[2]),
            let key = PasswordHash.bytes(values[3])
        else { return nil }
        self = .firebaseScrypt(FirebaseScrypt(logN: logN, r: r, saltSeparator: separator, signerKey: key))
    }

    private init?(hmac digest: HashDigest, _ parameters: Substring) {
        guard let values = PasswordHash.values(parameters, ["o", "k"]),
            let order = SaltOrder(rawValue: String(values[0])), let key = PasswordHash.bytes(values[1])
        else { return nil }
        self = .hmac(digest, key: key, order: order)
    }

    private init?(_ digest: HashDigest, _ parameters: Substring) {
        guard let values = PasswordHash.values(parameters, ["i", "o"]), let rounds = Int(values[0]),
            let order = SaltOrder(rawValue: String(values[1]))
        else { return nil }
        self = .digest(digest, rounds: rounds, order: order)
    }
}

extension HashDigest {
    fileprivate init?(_ name: String, after prefix: String) {
        guard name.hasPrefix(prefix) else { return nil }
        self.init(rawValue: String(name.dropFirst(prefix.count)))
    }
}
