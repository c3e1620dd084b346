extension HashScheme {
    private static let keyBytes = 1...1024
    private static let separatorBytesMax = 64
    private static let argon2LanesMax = 16
    /// Of PBKDF2, for a hash that is no longer than the digest.
    private static let roundsMax = 10_000_000
    /// N·r·p: about three seconds.
    private static let scryptWorkMax = 1 << 24

    /// Hashes are neither so short that many passwords have the same, nor longer than any scheme makes them.
    private static let derivedBytes = 16...128

    /// The memory of one hash in bytes while it is computed.
    var memoryBytes: Int {
        switch self {
        case .scrypt(let cost), .standardScrypt(let cost): cost.memoryBytes
        case .firebaseScrypt(let firebase): ScryptCost(logN: firebase.logN, r: firebase.r, p: 1).memoryBytes
        case .argon2(let argon2): argon2.memoryKiB << 10
        case .hmac, .pbkdf2, .digest, .bcrypt: 0
        }
    }

    /// Describes a cost or a key that is never computed with; nil when there is none (spec auth §7: a check takes a
    /// few seconds at most).
    ///
    /// - Parameter memoryBytesMax: the limit of an import; nil: of what is stored.
    func problem(memoryBytesMax: Int?) -> HashProblem? {
        let memoryMax = memoryBytesMax ?? Self.memoryBytesMax
        return switch self {
        case .scrypt(let cost): Self.problem(own: cost, memoryBytesMax)
        case .standardScrypt(let cost): Self.problem(cost, memoryMax)
        case .firebaseScrypt(let firebase): Self.problem(firebase)
        case .hmac(_, let key, _): Self.size("signerKey", key.count, Self.keyBytes)
        case .pbkdf2(_, let rounds): Self.count("rounds", rounds, 1...Self.roundsMax)
        case .digest(let digest, let rounds, _):
            Self.count("rounds", rounds, (digest == .md5 ? 0 : 1)...8192)
        case .bcrypt(let bcrypt): Self.within("the cost of bcrypt", bcrypt.cost, 4...15)
        case .argon2(let argon2): Self.problem(argon2, memoryMax)
        }
    }

    /// Describes a cost that no single parameter shows, of a hash of so many bytes: a check would take longer than a
    /// few seconds. Nil when it does not.
    func timeProblem(hashBytes: Int) -> HashProblem? {
        switch self {
        case .scrypt(let cost), .standardScrypt(let cost):
            guard cost.work > Self.scryptWorkMax else { return nil }
            return HashProblem("the product of N, r and p of scrypt should be at most \(Self.scryptWorkMax)")
        case .pbkdf2(let digest, let rounds):
            // Each block of the length of the digest takes all rounds.
            let blocks = max(1, (hashBytes + digest.byteCount - 1) / digest.byteCount)
            return Self.within("the rounds of PBKDF2", rounds, 1...Self.roundsMax / blocks)
        case .firebaseScrypt, .hmac, .digest, .bcrypt, .argon2: return nil
        }
    }

    /// Describes a salt or a hash of a wrong size; nil when both are right.
    func problem(saltBytes: Int, hashBytes: Int) -> HashProblem? {
        let saltBytesMin =
            switch self {
            case .argon2: 8
            case .scrypt: 1
            default: 0
            }
        if let problem = Self.size("salt", saltBytes, saltBytesMin...128) { return problem }
        let sizes =
            switch self {
            case .scrypt: PasswordHash.hashBytes...PasswordHash.hashBytes
            case .firebaseScrypt(let firebase): firebase.signerKey.count...firebase.signerKey.count
            case .hmac(let digest, _, _), .digest(let digest, _, _): digest.byteCount...digest.byteCount
            case .standardScrypt, .pbkdf2, .argon2: Self.derivedBytes
            case .bcrypt: Bcrypt.hashCharacters...Bcrypt.hashCharacters
            }
        return Self.size("passwordHash", hashBytes, sizes)
    }

    private static func problem(_ cost: ScryptCost, _ memoryBytesMax: Int) -> HashProblem? {
        count("blockSize", cost.r, 1...16) ?? count("parallelization", cost.p, 1...16) ?? rounds(cost)
            ?? memory(cost, memoryBytesMax)
    }

    /// BoringSSL refuses N from 2^16r on.
    private static func rounds(_ cost: ScryptCost) -> HashProblem? {
        guard !(1...min(20, cost.r * 16 - 1)).contains(cost.logN) else { return nil }
        let problem = "cpuMemCost should be a power of 2 from 2 to \(1 << min(20, cost.r * 16 - 1))"
        return HashProblem("cpuMemCost", problem)
    }

    /// What this service hashes with is a setting, and may take more than what is imported.
    private static func problem(own cost: ScryptCost, _ memoryBytesMax: Int?) -> HashProblem? {
        guard cost.isReasonable else { return HashProblem("scrypt needs ln ≤ 20, r ≤ 16 and p ≤ 16") }
        return memoryBytesMax.flatMap { rounds(cost) ?? memory(cost, $0) }
    }

    private static func memory(_ cost: ScryptCost, _ bytesMax: Int) -> HashProblem? {
        guard cost.memoryBytes > bytesMax else { return nil }
        return HashProblem(
            "cpuMemCost", "scrypt should take at most \(bytesMax >> 20) MiB, not \(cost.memoryBytes >> 20) MiB")
    }

    private static func problem(_ firebase: FirebaseScrypt) -> HashProblem? {
        count("rounds", firebase.r, 1...8) ?? count("memoryCost", firebase.logN, 1...14)
            ?? size("signerKey", firebase.signerKey.count, 16...128)
            ?? size("saltSeparator", firebase.saltSeparator.count, 0...separatorBytesMax)
    }

    private static func problem(_ argon2: Argon2, _ memoryBytesMax: Int) -> HashProblem? {
        within("the lanes of Argon2", argon2.lanes, 1...argon2LanesMax)
            ?? within(
                "the memory of Argon2 in KiB", argon2.memoryKiB,
                8 * argon2.lanes...max(8 * argon2.lanes, memoryBytesMax >> 10))
            ?? within("the passes of Argon2", argon2.passes, 1...10)
    }

    private static func count(_ name: String, _ value: Int, _ range: ClosedRange<Int>) -> HashProblem? {
        guard !range.contains(value) else { return nil }
        return HashProblem(name, "\(name) should be from \(range.lowerBound) to \(range.upperBound), not \(value)")
    }

    private static func within(_ name: String, _ value: Int, _ range: ClosedRange<Int>) -> HashProblem? {
        guard !range.contains(value) else { return nil }
        return HashProblem("\(name) should be from \(range.lowerBound) to \(range.upperBound), not \(value)")
    }

    private static func size(_ name: String, _ value: Int, _ range: ClosedRange<Int>) -> HashProblem? {
        guard !range.contains(value) else { return nil }
        let right =
            range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
        return HashProblem(name, "\(name) should have \(right) bytes, not \(value)")
    }
}
