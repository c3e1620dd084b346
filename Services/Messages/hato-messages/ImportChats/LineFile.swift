import CZlib

/// The lines of a file, gzipped or plain, a block at a time.
final class LineFile {
    private let file: gzFile
    private var block = [UInt8](repeating: 0, count: 1 << 18)
    private var filled = 0
    private var position = 0
    private var isAtEnd = false

    /// Lines longer than this are a mistake in the file, not a message.
    private static let lineBytesMax = 16 << 20

    init(path: String) throws(LineFileError) {
        guard let file = gzopen(path, "rb") else { throw LineFileError("cannot open \(path)") }
        self.file = file
        gzbuffer(file, 1 << 17)
    }

    deinit { gzclose(file) }

    /// How far the file itself is read, for a progress bar.
    var bytesRead: Int { Int(gzoffset(file)) }

    /// The next line without its end; nil after the last.
    func next() throws(LineFileError) -> [UInt8]? {
        var line: [UInt8] = []
        while true {
            if position == filled {
                guard try fill() else { return line.isEmpty ? nil : line }
            }
            let start = position
            while position < filled, block[position] != UInt8(ascii: "\n") { position += 1 }
            line.append(contentsOf: block[start..<position])
            if position < filled {
                position += 1
                if line.last == UInt8(ascii: "\r") { line.removeLast() }
                return line
            }
            if line.count > Self.lineBytesMax { throw LineFileError("holds a line of more than 16 MiB") }
        }
    }

    private func fill() throws(LineFileError) -> Bool {
        guard !isAtEnd else { return false }
        let count = block.withUnsafeMutableBytes { gzread(file, $0.baseAddress, UInt32($0.count)) }
        if count < 0 {
            var code: Int32 = 0
            let text = gzerror(file, &code).map { String(cString: $0) } ?? "cannot be read"
            throw LineFileError(text)
        }
        filled = Int(count)
        position = 0
        isAtEnd = count == 0
        return count > 0
    }
}

struct LineFileError: Error, Sendable, Hashable, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}
