/// One message to one mailbox: a text, and for mail programs that show it, the same in HTML.
///
/// A message that exists can be encoded: its headers have no line breaks. Its description does not show what it says,
/// which may be a code.
public struct MailMessage: Sendable, Hashable {
    /// Where it comes from.
    public let from: MailAddress
    /// Where it goes.
    public let to: MailAddress
    /// The header of that name.
    public let subject: String
    /// The body without markup.
    public let text: String
    /// The same body in HTML; nil for none.
    public let html: String?
    /// What stands before the `@` of its `Message-ID`, behind which the domain of the sender stands. The same message
    /// keeps its name when it is sent again, so that mail programs show it once.
    public let id: String
    /// When it was written, in milliseconds since 1970.
    public let time: Int64
    /// Texts that no failure may repeat though a server may: codes and links.
    public let secrets: [String]

    /// Of the subject.
    public static let subjectBytesMax = 1_000
    /// Of the text, and of its HTML.
    public static let bodyBytesMax = 256 << 10

    /// Checks a message. Throws `MailFieldError`.
    public init(
        from: MailAddress, to: MailAddress, subject: String, text: String, html: String? = nil, id: String,
        time: Int64, secrets: [String] = []
    ) throws(MailFieldError) {
        try TextCheck.requireNoControl(subject, "subject")
        try TextCheck.requireBytes(subject, max: Self.subjectBytesMax, "subject")
        try TextCheck.requireBytes(text, max: Self.bodyBytesMax, "text")
        if let html { try TextCheck.requireBytes(html, max: Self.bodyBytesMax, "html") }
        guard (1...128).contains(id.utf8.count), id.utf8.allSatisfy(Self.isIDByte) else {
            throw MailFieldError("id", "must be 1 to 128 letters, digits, hyphens and underscores")
        }
        self.from = from
        self.to = to
        self.subject = subject
        self.text = text
        self.html = html
        self.id = id
        self.time = time
        self.secrets = secrets
    }

    private static func isIDByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

extension MailMessage: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "mail \(id)" }
    public var debugDescription: String { description }
    /// Empty, so that no dump shows a code.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
