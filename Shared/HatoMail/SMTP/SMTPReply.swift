/// A reply of a server: a code of three digits, and its lines of text without line ends and control characters.
struct SMTPReply: Hashable, Sendable {
    var code: Int
    var lines: [String]

    /// Such as `5.7.8` (RFC 3463), at the beginning of the text.
    var enhancedCode: String? {
        guard let word = lines.first?.split(separator: " ").first, word.utf8.count <= 11 else { return nil }
        let parts = word.split(separator: ".", omittingEmptySubsequences: false)
        let isCode = parts.count == 3 && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(SMTPReplyReader.isDigit) }
        return isCode ? String(word) : nil
    }
}

/// A reply that is not one, or is too long.
struct SMTPReplyProblem: Error, Hashable {
    var text: String
}

/// Cuts replies from what arrives. It keeps at most one reply and the rest of one read.
struct SMTPReplyReader: Hashable {
    private let limits: SMTPLimits
    private var bytes: [UInt8] = []
    private var reply: SMTPReply?

    init(_ limits: SMTPLimits) { self.limits = limits }

    /// Whether nothing has arrived beyond the replies that were returned.
    var isEmpty: Bool { bytes.isEmpty && reply == nil }

    mutating func append(_ arrived: some Sequence<UInt8>) { bytes.append(contentsOf: arrived) }

    /// Forgets what has arrived.
    mutating func discard() { self = Self(limits) }

    /// The next reply; nil when its last line has not arrived.
    mutating func next() throws(SMTPReplyProblem) -> SMTPReply? {
        var start = bytes.startIndex
        defer { bytes.removeSubrange(..<start) }
        while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
            var line = bytes[start..<end]
            start = end + 1
            if line.count + 1 > limits.replyLineBytesMax { throw tooLong }
            if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
            if let whole = try add(line) { return whole }
        }
        if bytes.count - start >= limits.replyLineBytesMax { throw tooLong }
        return nil
    }

    private var tooLong: SMTPReplyProblem {
        SMTPReplyProblem(text: "the server sent a line of more than \(limits.replyLineBytesMax) bytes")
    }

    private mutating func add(_ line: ArraySlice<UInt8>) throws(SMTPReplyProblem) -> SMTPReply? {
        guard line.count >= 3, line.prefix(3).allSatisfy(Self.isDigit),
            (UInt8(ascii: "2")...UInt8(ascii: "5")).contains(line[line.startIndex])
        else { throw SMTPReplyProblem(text: "the server sent what is no reply of SMTP") }
        let code = line.prefix(3).reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        let separator = line.dropFirst(3).first ?? UInt8(ascii: " ")
        guard separator == UInt8(ascii: " ") || separator == UInt8(ascii: "-"), code == reply?.code ?? code else {
            throw SMTPReplyProblem(text: "the server sent what is no reply of SMTP")
        }
        var whole = reply ?? SMTPReply(code: code, lines: [])
        guard whole.lines.count < limits.replyLinesMax else {
            throw SMTPReplyProblem(text: "the server sent a reply of more than \(limits.replyLinesMax) lines")
        }
        whole.lines.append(Self.text(line.dropFirst(4)))
        reply = separator == UInt8(ascii: "-") ? whole : nil
        return reply == nil ? whole : nil
    }

    static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        let scalars = String(decoding: bytes, as: UTF8.self).unicodeScalars
        return String(String.UnicodeScalarView(scalars.map { TextCheck.isControl($0) ? " " : $0 }))
    }
}
