import CCrypt

/// bcrypt by libxcrypt: the version and the cost of a hash `$2b$10$` + salt + hash.
struct Bcrypt: Sendable, Hashable {
    /// In the alphabet of bcrypt.
    static let saltCharacters = 22
    static let hashCharacters = 31
    /// bcrypt hashes no more of a password.
    private static let passwordBytesMax = 72

    enum Version: String, Sendable, CaseIterable {
        case a = "2a"
        case b = "2b"
        case y = "2y"
    }

    var version: Version
    /// Log₂ of the rounds.
    var cost: Int

    var setting: String { "$\(version.rawValue)$\(cost < 10 ? "0" : "")\(cost)$" }

    /// Whether all characters are of the alphabet of bcrypt.
    static func isText(_ characters: some Sequence<UInt8>) -> Bool {
        characters.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
            case UInt8(ascii: ".")...UInt8(ascii: "9"): true
            default: false
            }
        }
    }

    /// The characters of the hash; none when libxcrypt refuses the setting, and for a password with a NUL: libxcrypt
    /// would hash what is before it.
    func derive(_ password: [UInt8], _ salt: [UInt8]) -> [UInt8] {
        let phrase = password.prefix(Self.passwordBytesMax).map { CChar(bitPattern: $0) } + [0]
        let settings = (Array(setting.utf8) + salt).map { CChar(bitPattern: $0) } + [0]
        let size = MemoryLayout<crypt_data>.size
        let data = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
        defer { data.deallocate() }
        data.initializeMemory(as: UInt8.self, repeating: 0, count: size)
        guard let text = crypt_rn(phrase, settings, data, Int32(size)) else { return [] }
        let hash = String(cString: text).utf8.suffix(Self.hashCharacters)
        return password.contains(0) ? [] : Array(hash)
    }
}
