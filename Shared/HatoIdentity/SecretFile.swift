#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Why a file of keys cannot be used; the text names the file and what to do.
public struct SecretFileError: Error, Sendable, Hashable, CustomStringConvertible {
    public var path: String
    public var problem: String
    public var description: String { "\(path): \(problem)" }

    public init(path: String, problem: String) {
        self.path = path
        self.problem = problem
    }
}

/// A small file that only its owner should read.
public enum SecretFile {
    /// The bytes of a file of at most `bytesMax` bytes, and its permission bits.
    public static func read(_ path: String, bytesMax: Int = 1 << 20) throws(SecretFileError) -> (
        bytes: [UInt8], mode: UInt32
    ) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SecretFileError(path: path, problem: "cannot be opened: \(lastError())") }
        defer { _ = close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw SecretFileError(path: path, problem: "cannot be examined: \(lastError())")
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw SecretFileError(path: path, problem: "is not a file") }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = buffer.withUnsafeMutableBytes { Self.read(descriptor, into: $0) }
            guard count >= 0 else { throw SecretFileError(path: path, problem: "cannot be read: \(lastError())") }
            if count == 0 { return (bytes, UInt32(status.st_mode) & 0o777) }
            bytes.append(contentsOf: buffer[..<count])
            guard bytes.count <= bytesMax else {
                throw SecretFileError(path: path, problem: "is larger than \(bytesMax) bytes")
            }
        }
    }

    /// Replaces the file at once, with mode 0600: a reader sees the old bytes or the new ones, also after a crash.
    public static func replace(_ path: String, with bytes: [UInt8]) throws(SecretFileError) {
        let draft = "\(path).\(getpid()).new"
        _ = unlink(draft)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SecretFileError(path: draft, problem: "cannot be made: \(lastError())") }
        let isWritten = bytes.withUnsafeBytes { write($0, to: descriptor) } && fsync(descriptor) == 0
        let writeError = lastError()
        _ = close(descriptor)
        guard isWritten else {
            _ = unlink(draft)
            throw SecretFileError(path: draft, problem: "cannot be written: \(writeError)")
        }
        guard rename(draft, path) == 0 else {
            let problem = "cannot be replaced: \(lastError())"
            _ = unlink(draft)
            throw SecretFileError(path: path, problem: problem)
        }
    }

    private static func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            #if canImport(Glibc)
                let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            #elseif canImport(Musl)
                let count = Musl.read(descriptor, buffer.baseAddress, buffer.count)
            #else
                let count = Darwin.read(descriptor, buffer.baseAddress, buffer.count)
            #endif
            if count < 0, errno == EINTR { continue }
            return count
        }
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let slice = UnsafeRawBufferPointer(rebasing: rest)
            #if canImport(Glibc)
                let count = Glibc.write(descriptor, slice.baseAddress, slice.count)
            #elseif canImport(Musl)
                let count = Musl.write(descriptor, slice.baseAddress, slice.count)
            #else
                let count = Darwin.write(descriptor, slice.baseAddress, slice.count)
            #endif
            if count < 0 {
                if errno == EINTR { continue }
                return false
            }
            rest = rest.dropFirst(count)
        }
        return true
    }

    private static func lastError() -> String { String(cString: strerror(errno)) }
}
