#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Why a file of keys cannot be used; the text names the file and the remedy.
public struct SecretFileError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The path of the file.
    public var path: String
    /// The problem as a sentence.
    public var problem: String
    public var description: String { "\(path): \(problem)" }

    public init(path: String, problem: String) {
        self.path = path
        self.problem = problem
    }
}

/// A small file that only its owner should read.
public enum SecretFile {
    /// The bytes of a file of at most `bytesMax` bytes, with its owner and mode.
    /// Throws `SecretFileError` when it is longer or cannot be read.
    public static func read(_ path: String, bytesMax: Int = 1 << 20) throws(SecretFileError) -> (
        bytes: [UInt8], access: SecretFileAccess
    ) {
        // Non-blocking: a pipe without a writer is refused below instead of waited for.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw SecretFileError(path: path, problem: "cannot be opened: \(openError(path))")
        }
        defer { _ = close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw SecretFileError(path: path, problem: "cannot be examined: \(lastError())")
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw SecretFileError(path: path, problem: "is not a file") }
        let access = SecretFileAccess(owner: UInt32(status.st_uid), mode: UInt32(status.st_mode))
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = buffer.withUnsafeMutableBytes { Self.read(descriptor, into: $0) }
            guard count >= 0 else { throw SecretFileError(path: path, problem: "cannot be read: \(lastError())") }
            if count == 0 { return (bytes, access) }
            bytes.append(contentsOf: buffer[..<count])
            guard bytes.count <= bytesMax else {
                throw SecretFileError(path: path, problem: "is larger than \(bytesMax) bytes")
            }
        }
    }

    /// The owner and mode of the file; nil when there is none.
    public static func access(_ path: String) -> SecretFileAccess? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return SecretFileAccess(owner: UInt32(status.st_uid), mode: UInt32(status.st_mode))
    }

    /// Whether `path` does not exist, or is a folder.
    public static func isMissing(_ path: String) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return errno == ENOENT || errno == ENOTDIR }
        return status.st_mode & S_IFMT == S_IFDIR
    }

    /// The effective user id of the process.
    public static var user: UInt32 { UInt32(geteuid()) }

    /// Replaces the file atomically, with mode 0600: a reader sees the old bytes or the new ones, also after a crash.
    /// Throws `SecretFileError` when it cannot be written.
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

    /// Why a file could not be opened; with its owner and mode when the process has no permission.
    private static func openError(_ path: String) -> String {
        let (number, text) = (errno, lastError())
        guard number == EACCES, let access = access(path) else { return text }
        return "\(text): it belongs to user \(access.owner) and has mode 0\(String(access.mode, radix: 8)), "
            + "the service runs as user \(user)"
    }

    private static func lastError() -> String { String(cString: strerror(errno)) }
}
