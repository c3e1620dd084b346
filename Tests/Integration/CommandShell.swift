import Foundation
import HatoModel
import HatoTesting
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Runs lines of a program as a shell would: words between spaces, 'quoted' ones as a whole, and `@name` for a file of
/// the folder.
struct CommandShell: Sendable {
    let program: String
    let folder: TemporaryFolder
    var environment: [String: String]

    /// - Parameter input: the file on its standard input.
    func run(_ line: String, input: String? = nil) async throws -> Executable.Ended {
        try await Executable.run(
            program, words(of: line), environment,
            streams: .init(input: input.map { "\(folder.path)/\($0)" } ?? "/dev/null"))
    }

    /// The output of a line whose standard output is a terminal.
    func shown(_ line: String) async throws -> String {
        let terminal = try Terminal()
        let ended = try await Executable.run(
            program, words(of: line), environment, streams: .init(terminal: terminal.program))
        #expect(ended.code == 0, "\(line): \(ended.error)")
        return try terminal.text() + ended.error
    }

    func words(of line: String) -> [String] {
        let pieces = line.split(separator: "'", omittingEmptySubsequences: false)
        var words: [String] = []
        for (index, piece) in pieces.enumerated() {
            if index.isMultiple(of: 2) {
                words += piece.split(separator: " ").map { path(String($0)) }
            } else {
                words.append(String(piece))
            }
        }
        return words
    }

    /// `@name` as a path, also behind another `@`.
    private func path(_ word: String) -> String {
        if word.hasPrefix("@@") { return "@\(folder.path)/\(word.dropFirst(2))" }
        return word.hasPrefix("@") ? "\(folder.path)/\(word.dropFirst())" : word
    }
}

/// Both ends of a terminal that nothing controls.
private final class Terminal {
    /// The end for the program.
    let program: FileHandle
    private let master: Int32

    init() throws {
        var ends: (master: Int32, program: Int32) = (-1, -1)
        try #require(openpty(&ends.master, &ends.program, nil, nil, nil) == 0)
        master = ends.master
        program = FileHandle(fileDescriptor: ends.program, closeOnDealloc: true)
    }

    deinit { close(master) }

    /// All that the program has written, after its end.
    func text() throws -> String {
        try program.close()
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = read(master, &block, block.count)
            // At the end, reading fails.
            guard count > 0 else { break }
            bytes += block[..<count]
        }
        return String(decoding: bytes, as: UTF8.self).replacing("\r\n", with: "\n")
    }
}
