import Foundation
import HatoMail
public import HatoModel

/// Validates and normalises e-mail addresses: lower case, composed (NFC), the domain in its Unicode form however it was
/// typed (full-width, with ideographic dots, `xn--`), so that one mailbox is one account.
enum EmailAddress {
    /// Whether mails can be sent to a normalised address; new ones must be so. The composed form may have other
    /// characters than what was typed, and the domain in ASCII longer labels.
    static func isMailable(_ address: String) -> Bool { (try? MailAddress(address, field: "email")) != nil }

    /// Nil for a text that is no address: there is exactly one `@`, a local part without spaces and quotes, and a
    /// domain of two labels or more. No mail can be sent to some (`isMailable`), such as those with a local part of
    /// more than 64 bytes. An earlier version has stored some of these: letters are longer in lower case, or composed.
    static func normalised(_ text: String, bytesMax: Int) -> String? {
        guard text.utf8.count <= bytesMax else { return nil }
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        guard parts.count == 2, isLocalPart(parts[0]) else { return nil }
        let domain = domain(parts[1])
        guard isDomain(domain[...]) else { return nil }
        let folded = parts[0].lowercased()
        let composed = isPlain(folded) ? folded : folded.precomposedStringWithCanonicalMapping
        let address = "\(composed)@\(domain)"
        return address.utf8.count <= bytesMax ? address : nil
    }

    /// Nil when the text is no domain of mailboxes.
    static func normalisedDomain(_ text: String) -> String? {
        guard text.utf8.count <= 253, let address = normalised("a@\(text)", bytesMax: 512),
            isMailable(address)
        else { return nil }
        return String(address.dropFirst(2))
    }

    /// The normalised domain (the mapping of UTS 46 as far as mailboxes need it).
    private static func domain(_ text: Substring) -> String {
        let folded = compatible(String(text))
        let labels = folded.split(separator: ".", omittingEmptySubsequences: false).map { label -> String in
            guard label.hasPrefix("xn--"), let decoded = Punycode.decoded(label.dropFirst(4)) else {
                return String(label)
            }
            return compatible(decoded)
        }
        return labels.joined(separator: ".")
    }

    /// In lower case and NFKC, where full-width letters become letters, and every dot that a keyboard has becomes a
    /// dot.
    private static func compatible(_ text: String) -> String {
        guard !isPlain(text) else { return text.lowercased() }
        var mapped = String.UnicodeScalarView()
        for scalar in text.precomposedStringWithCompatibilityMapping.lowercased().unicodeScalars {
            mapped.append(scalar == "\u{3002}" ? "." : scalar)
        }
        return String(mapped).precomposedStringWithCompatibilityMapping
    }

    private static func isPlain(_ text: String) -> Bool { text.utf8.allSatisfy { $0 < 0x80 } }

    /// Dot-separated atoms (RFC 5322 §3.2.3), plus letters of every script beyond ASCII (RFC 6531).
    private static func isLocalPart(_ text: Substring) -> Bool {
        let atoms = text.split(separator: ".", omittingEmptySubsequences: false)
        return atoms.allSatisfy { atom in !atom.isEmpty && atom.unicodeScalars.allSatisfy(isAtomScalar) }
    }

    private static func isAtomScalar(_ scalar: Unicode.Scalar) -> Bool {
        guard scalar.isASCII else { return isVisible(scalar) }
        // U+037E is a semicolon in its normalised form.
        return isLetterOrDigit(scalar) || "!#$%&'*+-/=?^_`{|}~;".unicodeScalars.contains(scalar)
    }

    private static func isDomain(_ text: Substring) -> Bool {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        return labels.count >= 2 && labels.allSatisfy(isLabel)
    }

    private static func isLabel(_ label: Substring) -> Bool {
        guard (1...63).contains(label.unicodeScalars.count), !label.hasPrefix("-"), !label.hasSuffix("-") else {
            return false
        }
        return label.unicodeScalars.allSatisfy { scalar in
            scalar.isASCII ? isLetterOrDigit(scalar) || scalar == "-" : isVisible(scalar)
        }
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

extension Auth.Users.Row {
    /// Whether the e-mail address of the row can be imported, and no mail can be sent to it.
    public var hasAddressWithoutMails: Bool {
        guard let email, let address = EmailAddress.normalised(email, bytesMax: AuthLimits().emailBytesMax) else {
            return false
        }
        return !EmailAddress.isMailable(address)
    }
}
