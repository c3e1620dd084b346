import Foundation
import HatoCommand
import HatoModel

/// The file that an export writes, a line an account. It has hashes of passwords: only its owner reads it.
final class ExportFile {
    private static let lineBytesMax = 1 << 20
    /// Of each line.
    private static let lineStart = Array(#"{"uid":""#.utf8)

    private let handle: FileHandle
    private let path: String

    /// Makes a file; an existing one is never written over. Throws `CommandFailure`.
    init(new path: String) throws(CommandFailure) {
        self.path = path
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let hint = errno == EEXIST ? "; --continue goes on where it ends" : ""
            throw CommandFailure(.inputOutput, "cannot make '\(path)': \(String(cString: strerror(errno)))\(hint)")
        }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Opens a file that an export has begun. Throws `CommandFailure`.
    init(begun path: String) throws(CommandFailure) {
        self.path = path
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw CommandFailure(.inputOutput, "cannot open '\(path)': \(String(cString: strerror(errno)))")
        }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Cuts off what is no whole line, lets only the owner read it, and returns the uid of the last account; nil in a
    /// file without one. Throws `CommandFailure` for a file that no export has written, and leaves it as it is.
    func lastUid() throws(CommandFailure) -> String? {
        do {
            let size = try handle.seekToEnd()
            let start = size - min(size, UInt64(2 * Self.lineBytesMax))
            try handle.seek(toOffset: start)
            let bytes = Array(try handle.readToEnd() ?? Data())
            let end = bytes.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
            guard end > 0 || start == 0 else { throw noExport }
            var uid: String?
            if end > 0 {
                let line = bytes[..<(end - 1)].split(separator: UInt8(ascii: "\n")).last ?? []
                uid = try? JSONParser.parse(Array(line))["uid"]?.string
                guard uid != nil else { throw noExport }
            } else if !bytes.starts(with: Self.lineStart), !Self.lineStart.starts(with: bytes) {
                throw noExport
            }
            guard fchmod(handle.fileDescriptor, 0o600) == 0 else {
                throw CommandFailure(.inputOutput, "cannot protect '\(path)': \(String(cString: strerror(errno)))")
            }
            try handle.truncate(atOffset: start + UInt64(end))
            try handle.seekToEnd()
            return uid
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw problem(error)
        }
    }

    func write(_ bytes: [UInt8]) throws(CommandFailure) {
        do { try handle.write(contentsOf: bytes) } catch { throw problem(error) }
    }

    /// What was written is on the disk. Throws `CommandFailure`.
    func finish() throws(CommandFailure) {
        do {
            try handle.synchronize()
            try handle.close()
        } catch {
            throw problem(error)
        }
    }

    private var noExport: CommandFailure {
        CommandFailure(.inputOutput, "'\(path)' is not what `users export` writes; it is not written to")
    }

    private func problem(_ error: any Error) -> CommandFailure {
        CommandFailure(.inputOutput, "cannot write '\(path)': \(error.localizedDescription)")
    }
}
