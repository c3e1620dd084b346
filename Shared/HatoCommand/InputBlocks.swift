import HatoRPC

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The bytes of a file or of stdin, a block at a time, however many there are.
public final class InputBlocks {
    /// The name in messages: the path, or `stdin`.
    public let name: String
    /// The size of a file in bytes; nil of stdin.
    public let size: Int?
    /// The bytes that were read.
    public private(set) var bytesRead = 0
    private let descriptor: Int32
    private var block = [UInt8](repeating: 0, count: 1 << 18)

    /// `-` is stdin. Throws `CommandFailure` with the file's name.
    public init(path: String) throws(CommandFailure) {
        if path == "-" {
            try CommandInput.readsAll("the file")
            (name, size, descriptor) = ("stdin", nil, dup(0))
            guard descriptor >= 0 else { throw CommandFailure(.inputOutput, "cannot read stdin") }
            return
        }
        if let problem = FileProblem.ofReading(path) {
            throw CommandFailure(.inputOutput, "cannot read '\(path)': \(problem)")
        }
        name = path
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0 else {
            throw CommandFailure(.inputOutput, "cannot read '\(path)': \(FileProblem.words(errno))")
        }
        size = status.st_mode & S_IFMT == S_IFREG ? Int(status.st_size) : nil
    }

    deinit { close(descriptor) }

    /// The next bytes; nil after the last. Throws `CommandFailure`.
    public func next() throws(CommandFailure) -> ArraySlice<UInt8>? {
        while true {
            let count = block.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            if count == 0 { return nil }
            if count > 0 {
                bytesRead += count
                return block[..<count]
            }
            guard errno == EINTR || errno == EAGAIN else {
                throw CommandFailure(.inputOutput, "cannot read '\(name)': \(FileProblem.words(errno))")
            }
        }
    }
}
