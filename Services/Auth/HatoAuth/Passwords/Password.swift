import Foundation

/// A password in the normalised form that is measured and hashed. Never logged: its description is fixed.
///
/// Normalised with NFKC (NIST SP 800-63B-4 §3.1.1.2): the same characters give the same password on every keyboard,
/// full-width and half-width letters included. Nothing is trimmed or cut.
struct Password: Sendable, CustomStringConvertible {
    private let text: String
    private let typed: String

    init(_ typed: String) {
        self.typed = typed
        text = typed.utf8.allSatisfy { $0 < 0x80 } ? typed : typed.precomposedStringWithCompatibilityMapping
    }

    var bytes: [UInt8] { Array(text.utf8) }
    /// Not normalised: what other software has hashed.
    var typedBytes: [UInt8] { Array(typed.utf8) }
    /// The number of Unicode code points, as NIST counts.
    var length: Int { text.unicodeScalars.count }
    var byteCount: Int { text.utf8.count }
    var lowercased: String { text.lowercased() }

    var description: String { "(password)" }
}
