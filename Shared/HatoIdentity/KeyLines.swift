/// The keys in a file of keys, one a line; blank lines and white space around keys are ignored.
///
/// `SecretFileAccess` checks the owner and the mode of the file.
public struct KeyLines: Sendable {
    /// The minimum length of a key in bytes: it is chosen once, and guessing it must be infeasible (protocol §2).
    public static let keyBytesMin = 32

    /// Secret; in the order of the file, never empty.
    public let keys: [String]
    /// Warnings for the operator that do not stop the start.
    public let warnings: [String]

    /// Reads the file at `path`.
    public init(file path: String) throws(SecretFileError) {
        let (bytes, access) = try SecretFile.read(path)
        var warnings: [String] = []
        switch access.verdict(for: SecretFile.user) {
        case .safe: break
        case .warning(let text): warnings.append("\(path): \(text)")
        case .refused(let text): throw SecretFileError(path: path, problem: text)
        }
        var keys: [String] = []
        for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            let key = Self.trimmed(line)
            if key.isEmpty { continue }
            guard key.count >= Self.keyBytesMin else {
                throw SecretFileError(
                    path: path,
                    problem:
                        "the key on line \(index + 1) has \(key.count) bytes, at least \(Self.keyBytesMin) are needed")
            }
            // Clients send keys as JSON text.
            guard let text = String(validating: key, as: UTF8.self),
                !text.unicodeScalars.contains(where: { $0.value < 0x20 })
            else {
                throw SecretFileError(
                    path: path,
                    problem: "the key on line \(index + 1) is no text; make one with: openssl rand -base64 36")
            }
            keys.append(text)
        }
        guard !keys.isEmpty else { throw SecretFileError(path: path, problem: "holds no key") }
        self.keys = keys
        self.warnings = warnings
    }

    private static func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
        var line = line
        while let first = line.first, isSpace(first) { line.removeFirst() }
        while let last = line.last, isSpace(last) { line.removeLast() }
        return line
    }
}
