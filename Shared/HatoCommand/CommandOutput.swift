public import HatoModel

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The output of a command: results to stdout, everything else to stderr.
public struct CommandOutput: Sendable {
    /// Whether stdout is a terminal and JSON was not requested: then tables and indented JSON are printed.
    public var isForPeople: Bool
    /// Whether stderr is a terminal: then progress is drawn.
    public var showsProgress: Bool
    private let standardOutput: @Sendable ([UInt8]) throws(CommandFailure) -> Void
    private let standardError: @Sendable ([UInt8]) throws(CommandFailure) -> Void

    public init(
        isForPeople: Bool, showsProgress: Bool,
        standardOutput: @escaping @Sendable ([UInt8]) throws(CommandFailure) -> Void,
        standardError: @escaping @Sendable ([UInt8]) throws(CommandFailure) -> Void
    ) {
        self.isForPeople = isForPeople
        self.showsProgress = showsProgress
        self.standardOutput = standardOutput
        self.standardError = standardError
    }

    /// Replaces the process's own output in tests.
    @TaskLocal static var substitute: CommandOutput?

    /// The process's own output, or the substitute.
    public static func standard(json: Bool) -> CommandOutput {
        if var substitute {
            if json { substitute.isForPeople = false }
            return substitute
        }
        return CommandOutput(
            isForPeople: !json && isatty(1) == 1, showsProgress: isatty(2) == 1,
            standardOutput: { bytes throws(CommandFailure) in try writeAll(bytes, to: 1) },
            standardError: { bytes throws(CommandFailure) in try writeAll(bytes, to: 2) })
    }

    /// Prints one JSON value, on one line; indented on a terminal.
    ///
    /// - Throws: `CommandFailure` when standard output cannot be written.
    public func show(_ value: JSONValue) throws {
        try standardOutput((isForPeople ? IndentedJSON.bytes(of: value) : value.encoded) + [UInt8(ascii: "\n")])
    }

    /// Prints one JSON value on one line, also on a terminal: an event of a stream.
    ///
    /// - Throws: `CommandFailure` when standard output cannot be written.
    public func showLine(_ value: JSONValue) throws {
        try standardOutput(value.encoded + [UInt8(ascii: "\n")])
    }

    /// Prints the table on a terminal, otherwise the JSON value.
    ///
    /// - Throws: `CommandFailure` when standard output cannot be written.
    public func show(_ value: JSONValue, as table: CommandTable?) throws {
        guard isForPeople, let table else { return try show(value) }
        try standardOutput(Array(table.text.utf8))
    }

    /// Prints one member of a result; a string without quotes, everything else as JSON.
    ///
    /// - Throws: `CommandFailure` when the result has no such member, or standard output cannot be written.
    public func show(member: String, of result: JSONValue) throws {
        guard let value = result[member] else {
            let names = result.object?.members.map(\.name).joined(separator: ", ") ?? "none"
            throw CommandFailure(
                .refused, "the call was carried out, but its result has no member '\(member)'; it has: \(names)")
        }
        try standardOutput((value.string.map { Array($0.utf8) } ?? value.encoded) + [UInt8(ascii: "\n")])
    }

    /// Prints text that is itself the result: a page of metrics.
    ///
    /// - Throws: `CommandFailure` when standard output cannot be written.
    public func show(text: String) throws {
        try standardOutput(Array((text.hasSuffix("\n") ? text : text + "\n").utf8))
    }

    /// Prints bytes that are themselves the result: a page of an export.
    ///
    /// - Throws: `CommandFailure` when standard output cannot be written.
    public func show(bytes: [UInt8]) throws {
        try standardOutput(bytes)
    }

    /// Prints a line to stderr. A failure to write is ignored, since there is no other output.
    public func complain(_ line: String) {
        try? standardError(Array((line + "\n").utf8))
    }

    func draw(_ text: String) {
        try? standardError(Array(text.utf8))
    }

    private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) throws(CommandFailure) {
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                if errno == EINTR || errno == EAGAIN { continue }
                throw CommandFailure(.inputOutput, "cannot write: \(String(cString: strerror(errno)))")
            }
            written += count
        }
    }
}
