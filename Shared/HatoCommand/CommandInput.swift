import Foundation
import HatoRPC

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The input of a command besides its arguments.
public enum CommandInput {
    /// The bytes of a file; `-` is stdin. Throws `CommandFailure` with the file's name.
    public static func bytes(of file: String) throws(CommandFailure) -> [UInt8] {
        if file == "-" { return try all() }
        if let problem = FileProblem.ofReading(file) {
            throw CommandFailure(.inputOutput, "cannot read '\(file)': \(problem)")
        }
        do { return Array(try Data(contentsOf: URL(filePath: file))) } catch {
            throw CommandFailure(.inputOutput, "cannot read '\(file)': \(error.localizedDescription)")
        }
    }

    static func all() throws(CommandFailure) -> [UInt8] {
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
