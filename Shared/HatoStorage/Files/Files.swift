#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The file operations that stores use; every error says what was tried, on which path, and why it failed.
package enum Files {
    package static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Creates the folder and its parents, each durable; does nothing when it exists.
    package static func createFolder(_ path: String) throws(StoreError) {
        if mkdir(path, 0o700) == 0 { return try syncFolder(of: path) }
        if errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            try createFolder(String(path[..<slash]))
            if mkdir(path, 0o700) == 0 { return try syncFolder(of: path) }
        }
        guard errno == EEXIST, isFolder(path) else { throw failure("create the folder", path) }
    }

    /// Creates the folder, which must not exist yet.
    package static func createNewFolder(_ path: String) throws(StoreError) {
        guard mkdir(path, 0o700) == 0 else { throw failure("create the folder", path) }
    }

    package static func names(in folder: String) throws(StoreError) -> [String] {
        guard let stream = opendir(folder) else { throw failure("list the folder", folder) }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: pointer.pointee)) {
                    String(cString: $0)
                }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    package static func read(_ path: String) throws(StoreError) -> [UInt8] {
        let file = try OpenFile(path, access: .read)
        var (bytes, buffer): ([UInt8], [UInt8]) = ([], Array(repeating: 0, count: 1 << 16))
        while true {
            let count = try file.read(into: &buffer)
            if count == 0 { return bytes }
            bytes.append(contentsOf: buffer[..<count])
        }
    }

    /// Writes the whole file so that after a crash it is complete or does not exist.
    package static func write(_ bytes: [UInt8], to path: String) throws(StoreError) {
        let unfinished = path + ".new"
        do {
            let file = try OpenFile(unfinished, access: .createEmpty)
            try file.write(bytes.span, at: 0)
            try file.sync()
        }
        guard rename(unfinished, path) == 0 else { throw failure("rename", unfinished) }
        try syncFolder(of: path)
    }

    package static func remove(_ path: String) throws(StoreError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw failure("remove", path) }
        try syncFolder(of: path)
    }

    /// Gives the file another name, on the same disk. Not durable.
    package static func link(_ path: String, to name: String) throws(StoreError) {
        #if canImport(Darwin)
            let code = Darwin.link(path, name)
        #elseif canImport(Musl)
            let code = Musl.link(path, name)
        #else
            let code = Glibc.link(path, name)
        #endif
        guard code == 0 else { throw failure("link to \(name)", path) }
    }

    /// Makes names that were created, renamed or removed in the folder of `path` durable.
    package static func syncFolder(of path: String) throws(StoreError) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        try OpenFile(folder.isEmpty ? "/" : folder, access: .read).sync()
    }

    static func failure(_ doing: String, _ path: String) -> StoreError {
        .io("cannot \(doing) \(path): \(String(cString: strerror(errno)))")
    }

    static func isFolder(_ path: String) -> Bool {
        guard let stream = opendir(path) else { return false }
        closedir(stream)
        return true
    }
}

/// An open file; releasing the object closes it.
package final class OpenFile: Sendable {
    package enum Access {
        case read
        case write
        /// To write; the file is created when it is missing.
        case create
        /// To write; the previous contents are removed.
        case createEmpty

        fileprivate var flags: Int32 {
            switch self {
            case .read: O_RDONLY
            case .write: O_RDWR
            case .create: O_RDWR | O_CREAT
            case .createEmpty: O_RDWR | O_CREAT | O_TRUNC
            }
        }
    }

    private let descriptor: Int32
    private let path: String

    package init(_ path: String, access: Access) throws(StoreError) {
        let descriptor = open(path, access.flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Files.failure("open", path) }
        self.descriptor = descriptor
        self.path = path
    }

    deinit { close(descriptor) }

    /// Reads the next bytes, as many as fit; returns 0 at the end.
    package func read(into buffer: inout [UInt8]) throws(StoreError) -> Int {
        while true {
            let count = buffer.withUnsafeMutableBytes { SystemCall.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Files.failure("read", path) }
            return count
        }
    }

    /// Reads until `buffer` is full or the file ends; returns how many bytes it read.
    package func read(into buffer: inout [UInt8], at offset: Int) throws(StoreError) -> Int {
        var done = 0
        while done < buffer.count {
            let count = buffer.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress?.advanced(by: done), $0.count - done, off_t(offset + done))
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Files.failure("read", path) }
            if count == 0 { break }
            done += count
        }
        return done
    }

    package func write(_ bytes: Span<UInt8>, at offset: Int) throws(StoreError) {
        var done = 0
        while done < bytes.count {
            let count = bytes.extracting(done..<bytes.count).withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset + done))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Files.failure("write", path) }
            done += count
        }
    }

    package func sync() throws(StoreError) {
        guard fsync(descriptor) == 0 else { throw Files.failure("sync", path) }
    }

    /// Syncs the bytes, and of the metadata only what is needed to read them: size and block locations.
    package func syncData() throws(StoreError) {
        #if canImport(Darwin)
            try sync()
        #else
            guard fdatasync(descriptor) == 0 else { throw Files.failure("sync", path) }
        #endif
    }

    /// Truncates the file to `size` bytes; durable when it returns.
    package func cut(to size: Int) throws(StoreError) {
        guard ftruncate(descriptor, off_t(size)) == 0 else { throw Files.failure("cut", path) }
        try sync()
    }

    /// The number of hard links of the file.
    package func linkCount() throws(StoreError) -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Files.failure("look at", path) }
        return Int(status.st_nlink)
    }

    /// The size of the file in bytes.
    package func byteCount() throws(StoreError) -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Files.failure("look at", path) }
        return Int(status.st_size)
    }

    /// Locks the file for this open file alone, until it is closed; false when another holder has the lock, in this
    /// process or another.
    ///
    /// It retries for a quarter of a second: a child process has copies of all open files of this process, including
    /// their locks, until its own program runs, so a file that was just closed here may still be locked.
    package func lock() throws(StoreError) -> Bool {
        for _ in 0..<50 {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
            guard errno == EWOULDBLOCK else { throw Files.failure("lock", path) }
            usleep(5_000)
        }
        return false
    }
}

/// System calls whose names the standard library or this module would hide.
private enum SystemCall {
    static func read(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ count: Int) -> Int {
        #if canImport(Darwin)
            Darwin.read(descriptor, buffer, count)
        #elseif canImport(Musl)
            Musl.read(descriptor, buffer, count)
        #else
            Glibc.read(descriptor, buffer, count)
        #endif
    }
}
