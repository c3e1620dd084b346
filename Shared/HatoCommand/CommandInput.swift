import Foundation
import HatoRPC
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The input of a command besides its arguments.
public enum CommandInput {
    /// What has read stdin to its end; nil: nothing has.
    private static let reader = Mutex<String?>(nil)

    /// The bytes of a file; `-` is stdin.
    ///
    /// - Parameter name: what is read, for errors: an option, or words.
    /// - Throws: `CommandFailure` with the file's name, or when something else has read stdin.
    public static func bytes(of file: String, as name: String = "the file") throws(CommandFailure) -> [UInt8] {
        if file == "-" { return try all(as: name) }
        if let problem = FileProblem.ofReading(file) {
            throw CommandFailure(.inputOutput, "cannot read '\(file)': \(problem)")
        }
        do { return Array(try Data(contentsOf: URL(filePath: file))) } catch {
            throw CommandFailure(.inputOutput, "cannot read '\(file)': \(error.localizedDescription)")
        }
    }

    /// Nothing is left of stdin behind something that reads it to its end. Throws `CommandFailure` that names it and
    /// `name`, which is to read stdin, too.
    static func requireUnread(by name: String) throws(CommandFailure) {
        guard let reader = reader.withLock({ $0 }) else { return }
        throw twoOnStdin(reader, name)
    }

    /// The failure of a command that would read two things from stdin.
    public static func twoOnStdin(_ one: String, _ other: String) -> CommandFailure {
        CommandFailure(.usage, "\(one) and \(other) both read stdin (-): give a file for one of them")
    }

    /// Remembers that `name` reads stdin to its end. Throws as `requireUnread`.
    static func readsAll(_ name: String) throws(CommandFailure) {
        try requireUnread(by: name)
        reader.withLock { $0 = name }
    }

    static func all(as name: String) throws(CommandFailure) -> [UInt8] {
        try readsAll(name)
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = chunk.withUnsafeMutableBytes { read(0, $0.baseAddress, $0.count) }
            if count == 0 { return bytes }
            if count < 0 {
                if errno == EINTR { continue }
                throw CommandFailure(.inputOutput, "cannot read stdin: \(String(cString: strerror(errno)))")
            }
            bytes.append(contentsOf: chunk[..<count])
        }
    }
}
