#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Secrets that a command reads, never from its arguments: other users of the machine can see those.
public enum SecretInput {
    /// The first line of `file`; without one, or with `-`, the next line of stdin, with a question and without echo on
    /// a terminal.
    ///
    /// - Throws: `CommandFailure`, which names the secret but not its text.
    public static func line(_ name: String, in file: String?) throws(CommandFailure) -> String {
        let line = if let file, file != "-" { try lines(of: file).first } else { try typed(name) }
        guard let line, !line.isEmpty else {
            throw CommandFailure(.usage, "no \(name): give a file with it, or a line on stdin")
        }
        return line
    }

    /// The lines of `file` that are not blank; `-` is all of stdin.
    ///
    /// - Parameter name: what is read, for errors: an option, or words.
    /// - Throws: `CommandFailure`.
    public static func lines(of file: String, as name: String = "the file") throws(CommandFailure) -> [String] {
        let text = String(decoding: try CommandInput.bytes(of: file, as: name), as: UTF8.self)
        return text.split(whereSeparator: \.isNewline).map { String($0) }
    }

    private static func typed(_ name: String) throws(CommandFailure) -> String? {
        try CommandInput.requireUnread(by: "the \(name)")
        var shown = termios()
        guard isatty(0) == 1, tcgetattr(0, &shown) == 0 else { return nextLine() }
        var hidden = shown
        hidden.c_lflag &= ~tcflag_t(ECHO)
        CommandOutput.standard(json: false).complain("\(name.prefix(1).uppercased())\(name.dropFirst()):")
        tcsetattr(0, TCSAFLUSH, &hidden)
        defer { tcsetattr(0, TCSAFLUSH, &shown) }
        return nextLine()
    }

    /// The next line of stdin, read byte by byte: what follows it is left for others.
    private static func nextLine() -> String? {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while true {
            let count = read(0, &byte, 1)
            if count < 0, errno == EINTR { continue }
            guard count == 1 else { return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self) }
            guard byte != UInt8(ascii: "\n") else { break }
            bytes.append(byte)
        }
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}
