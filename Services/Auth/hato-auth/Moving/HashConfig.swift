import HatoCommand
import HatoModel

/// How the hashes of an import were made, from a file: as the Firebase console shows it (`hash_config { … }`), or with
/// the names of `auth.users.import`. A file, because it has the signer key.
struct HashConfig {
    /// The names of Firebase's console, of `firebase auth:import`, and ours.
    private static let names: [String: String] = [
        "algorithm": "hashAlgorithm", "base64_signer_key": "signerKey", "base64_salt_separator": "saltSeparator",
        "rounds": "rounds", "mem_cost": "memoryCost", "parallelization": "parallelization", "block_size": "blockSize",
        "dk_len": "dkLen", "hash_input_order": "passwordHashOrder",
    ]

    private static let numbers: Set<String> = [
        "rounds", "memoryCost", "cpuMemCost", "blockSize", "parallelization", "dkLen",
    ]

    private static let orders = ["PASSWORD_FIRST": "PASSWORD_AND_SALT", "SALT_FIRST": "SALT_AND_PASSWORD"]

    /// The parameters of `auth.users.import`.
    private(set) var params = JSONObject()

    /// Throws `CommandFailure` for a line that is none of `name: value`.
    init(file: String) throws {
        let bytes = try CommandInput.bytes(of: file, as: "--hash-config")
        try self.init(text: String(decoding: bytes, as: UTF8.self), name: file)
    }

    /// - Parameter name: of the file, for messages, which never have values.
    init(text: String, name: String) throws(CommandFailure) {
        let allowed = Set(Self.names.values).union(["cpuMemCost"])
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.split { " \t,{}".contains($0) }
            guard !words.isEmpty, words != ["hash_config"] else { continue }
            let parts = words.joined(separator: " ").split(separator: ":", maxSplits: 1)
            let given = parts.first.map { String($0).trimmed } ?? ""
            let parameter = Self.names[given] ?? given
            guard parts.count == 2, allowed.contains(parameter) else {
                let known = Self.names.keys.sorted().joined(separator: ", ")
                throw CommandFailure(
                    .inputOutput,
                    "'\(name)': '\(given)' is no line of a hash_config; its lines are NAME: VALUE with \(known)")
            }
            try set(parameter, String(parts[1]).trimmed, name)
        }
        guard params["hashAlgorithm"] != nil else {
            throw CommandFailure(.inputOutput, "'\(name)' has no line `algorithm: …`, e.g. algorithm: SCRYPT")
        }
        // One name in the console, two in the request.
        if params["hashAlgorithm"] == "STANDARD_SCRYPT", let cost = params["memoryCost"] {
            params["memoryCost"] = nil
            params["cpuMemCost"] = cost
        }
    }

    private mutating func set(_ parameter: String, _ text: String, _ name: String) throws(CommandFailure) {
        guard Self.numbers.contains(parameter) else {
            params[parameter] = .string(Self.orders[text] ?? text)
            return
        }
        guard let number = Int(text) else {
            throw CommandFailure(.inputOutput, "'\(name)': \(parameter) should be a number")
        }
        params[parameter] = .number(Double(number))
    }
}

extension String {
    fileprivate var trimmed: String {
        String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()).filter { $0 != "\"" }
    }
}
