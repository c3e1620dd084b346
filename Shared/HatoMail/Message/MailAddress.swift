import Foundation

/// The address of a mailbox, with the name that mail programs show beside it.
///
/// An address that exists is safe in a command and in a header: a local part of dot-separated atoms (RFC 5322 §3.2.3,
/// beyond ASCII RFC 6531) without spaces, quotes and control characters, and a domain of ASCII labels. A domain with
/// other letters is converted (`例え.jp` is `xn--r8jz45g.jp`), which every server takes.
public struct MailAddress: Sendable, Hashable, CustomStringConvertible {
    /// What stands before the `@`, in its composed form (NFC).
    public let localPart: String
    /// In ASCII, internationalised labels as `xn--…`.
    public let domain: String
    /// The name beside the address; nil for none.
    public let displayName: String?

    /// Of an address and its parts (RFC 5321 §4.5.3.1).
    private static let (addressBytesMax, localPartBytesMax, labelBytesMax) = (254, 64, 63)
    /// Of the name beside an address.
    public static let displayNameBytesMax = 256

    /// Reads an address. Throws `MailFieldError`, which has the name of the `field`.
    public init(_ text: String, displayName: String? = nil, field: String) throws(MailFieldError) {
        try TextCheck.requireBytes(text, max: 4 * Self.addressBytesMax, field)
        try TextCheck.requireNoControl(text, field)
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        // Some characters become ASCII when composed, such as U+037E, the semicolon.
        let localPart = parts.first.map { String($0).precomposedStringWithCanonicalMapping } ?? ""
        guard parts.count == 2, Self.isLocalPart(parts[0]), Self.isLocalPart(localPart[...]) else {
            throw MailFieldError(field, "must be an address such as name@example.com")
        }
        guard let domain = Self.domainInASCII(parts[1]) else {
            throw MailFieldError(field, "must have a domain such as example.com behind the @")
        }
        self.localPart = localPart
        self.domain = domain
        guard localPart.utf8.count <= Self.localPartBytesMax,
            localPart.utf8.count + 1 + domain.utf8.count <= Self.addressBytesMax
        else {
            throw MailFieldError(
                field, "must have at most \(Self.addressBytesMax) bytes, \(Self.localPartBytesMax) before the @")
        }
        if let displayName {
            try TextCheck.requireNoControl(displayName, field)
            try TextCheck.requireBytes(displayName, max: Self.displayNameBytesMax, field)
        }
        self.displayName = displayName.flatMap { $0.allSatisfy(\.isWhitespace) ? nil : $0 }
    }

    /// `name@example.com`.
    public var text: String { "\(localPart)@\(domain)" }

    public var description: String { text }

    /// Whether only servers with SMTPUTF8 take the address (RFC 6531): its local part has letters beyond ASCII, for
    /// which there is no other form.
    public var needsUTF8: Bool { !localPart.utf8.allSatisfy { $0 < 0x80 } }

    private static func isLocalPart(_ text: Substring) -> Bool {
        let atoms = text.split(separator: ".", omittingEmptySubsequences: false)
        return atoms.allSatisfy { atom in !atom.isEmpty && atom.unicodeScalars.allSatisfy(isAtomScalar) }
    }

    private static func isAtomScalar(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return isLetterOrDigit(scalar) || "!#$%&'*+-/=?^_`{|}~".unicodeScalars.contains(scalar) }
        return isVisible(scalar)
    }

    /// Nil when it is no domain: labels of letters, digits and hyphens.
    static func domainInASCII(_ text: some StringProtocol) -> String? {
        var labels: [String] = []
        for label in text.split(separator: ".", omittingEmptySubsequences: false) {
            var name = String(label)
            if !name.utf8.allSatisfy({ $0 < 0x80 }) {
                guard name.unicodeScalars.allSatisfy(isVisible) else { return nil }
                name = name.precomposedStringWithCompatibilityMapping.lowercased()
                if !name.utf8.allSatisfy({ $0 < 0x80 }) {
                    guard let encoded = Punycode.encoded(name.precomposedStringWithCompatibilityMapping) else {
                        return nil
                    }
                    name = "xn--" + encoded
                }
            }
            guard (1...labelBytesMax).contains(name.utf8.count), !name.hasPrefix("-"), !name.hasSuffix("-"),
                name.unicodeScalars.allSatisfy({ isLetterOrDigit($0) || $0 == "-" })
            else { return nil }
            labels.append(name)
        }
        let domain = labels.joined(separator: ".")
        return (1..<addressBytesMax).contains(domain.utf8.count) ? domain : nil
    }

    private static func isLetterOrDigit(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9": true
        default: false
        }
    }

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .spaceSeparator, .lineSeparator,
            .paragraphSeparator:
            false
        default: true
        }
    }
}
