import CZlib
import HatoCommand
import HatoRPC

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The lines, or the bytes, of a file or of stdin, gzipped or plain, a block at a time.
final class LineFile {
    private let file: gzFile
    /// Its name in messages: its path, or `stdin`.
    let name: String
    private var block = [UInt8](repeating: 0, count: 1 << 18)
    private var filled = 0
    private var position = 0
    private var isAtEnd = false

    /// Lines longer than this are a mistake in the file, not a message.
    private static let lineBytesMax = 16 << 20
    static let tooLong = "longer than 16 MiB"

    /// `-` is stdin.
    init(path: String) throws(CommandFailure) {
        if path == "-" {
            let descriptor = dup(0)
            guard descriptor >= 0, let file = gzdopen(descriptor, "rb") else {
                throw CommandFailure(.inputOutput, "cannot read stdin")
            }
            self.file = file
            name = "stdin"
            return
        }
        if let problem = FileProblem.ofReading(path) {
            throw CommandFailure(.inputOutput, "cannot read '\(path)': \(problem)")
        }
        guard let file = gzopen(path, "rb") else { throw CommandFailure(.inputOutput, "cannot read '\(path)'") }
        self.file = file
        name = path
        gzbuffer(file, 1 << 17)
    }

    deinit { gzclose(file) }

    /// The position in the file itself, for a progress bar.
    var bytesRead: Int { Int(gzoffset(file)) }

    /// The next line without its end, `.some(nil)` for one that is too long to be read; nil after the last.
    func next() throws(CommandFailure) -> [UInt8]?? {
        var (line, isTooLong): ([UInt8], Bool) = ([], false)
        while true {
            if position == filled {
                guard try fill() else { return isTooLong ? .some(nil) : line.isEmpty ? nil : .some(line) }
            }
            let start = position
            while position < filled, block[position] != UInt8(ascii: "\n") { position += 1 }
            if !isTooLong { line.append(contentsOf: block[start..<position]) }
            if position < filled {
                position += 1
                if isTooLong { return .some(nil) }
                if line.last == UInt8(ascii: "\r") { line.removeLast() }
                return .some(line)
            }
            if line.count > Self.lineBytesMax { (line, isTooLong) = ([], true) }
        }
    }

    /// The next bytes unchanged; nil after the last. A file is read either in lines or in blocks.
    func nextBlock() throws(CommandFailure) -> ArraySlice<UInt8>? {
        if position == filled {
            guard try fill() else { return nil }
        }
        defer { position = filled }
        return block[position..<filled]
    }

    /// The first byte that is not white space, which is not consumed; nil if there is none in the first block.
    func firstByte() throws(CommandFailure) -> UInt8? {
        if position == filled {
            guard try fill() else { return nil }
        }
        return block[position..<filled].first { !" \t\r\n".utf8.contains($0) }
    }

    private func fill() throws(CommandFailure) -> Bool {
        guard !isAtEnd else { return false }
        let count = block.withUnsafeMutableBytes { gzread(file, $0.baseAddress, UInt32($0.count)) }
        // The data of a truncated file came before; at its end zlib only reports that the rest is missing.
        var code = Z_OK
        let text = gzerror(file, &code).map { String(cString: $0) } ?? ""
        if count == 0, code == Z_BUF_ERROR { throw failure("ends too early: the gzip file was cut off") }
        if count < 0 { throw failure("is damaged: \(text)") }
        filled = Int(count)
        position = 0
        isAtEnd = count == 0
        return count > 0
    }

    private func failure(_ problem: String) -> CommandFailure {
        CommandFailure(.inputOutput, "'\(name)' \(problem)")
    }
}
