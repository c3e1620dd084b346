import Foundation
import Glibc
import HatoTesting

/// A disk of its own below one folder, which can be made to fail: full, without blocks for file contents, or without
/// power. It is made of memory, by root.
final class TestDisk: Sendable {
    enum Kind {
        /// Memory of the given size: "No space left on device" when it is full.
        case memory
        /// ext4 on an image in memory: where the memory has no space for a block, the disk fails ("Input/output error"
        /// on sync).
        case image
    }

    private static let kilobytesMax = 1 << 20
    private let kind: Kind
    private let path: String
    /// The path of the image.
    private var memoryFolder: String { path + ".memory" }
    private var image: String { memoryFolder + "/image" }

    static let isPossible: Bool = {
        guard geteuid() == 0 else { return false }
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("hato-disk-\(UUID().uuidString)").path
        let disk = TestDisk(.image, path)
        defer { disk.remove() }
        return (try? disk.make()) != nil
    }()

    static func with(_ kind: Kind, at path: String, _ body: (TestDisk) async throws -> Void) async throws {
        let disk = TestDisk(kind, path)
        defer { disk.remove() }
        try disk.make()
        try await body(disk)
    }

    private init(_ kind: Kind, _ path: String) {
        self.kind = kind
        self.path = path
    }

    // MARK: Faults

    /// Leaves no more than this free from now on.
    func leave(kilobytes: Int) throws {
        switch kind {
        case .memory:
            let filled = (try? FileManager.default.attributesOfItem(atPath: filler.path)[.size] as? Int) ?? 0
            try Data(count: max(0, filled + free(path) - kilobytes << 10)).write(to: filler)
        case .image:
            let used = try (Self.kilobytesMax << 10) - free(memoryFolder)
            try Self.run("mount", "-o", "remount,size=\(used >> 10 + kilobytes)k", memoryFolder)
        }
    }

    /// As if the machine lost its power: unsynced data is lost, and nothing can be read or written.
    func cutPower() throws {
        let folder = open(path, O_RDONLY)
        defer { close(folder) }
        // EXT4_IOC_SHUTDOWN, with the flag for "do not write the journal".
        var flags: UInt32 = 2
        guard folder >= 0, ioctl(folder, 0x8004_587D, &flags) == 0 else {
            throw DeadlineExceeded("the file system goes down: \(String(cString: strerror(errno)))")
        }
    }

    /// Repairs the disk with the data that reached it. No process may have a file on it open.
    func mend() throws {
        switch kind {
        case .memory: try FileManager.default.removeItem(at: filler)
        case .image:
            try Self.run("umount", path)
            try Self.run("mount", "-o", "remount,size=\(Self.kilobytesMax)k", memoryFolder)
            // 1: e2fsck has repaired something.
            try Self.run("e2fsck", "-fp", image, accepting: [0, 1])
            try Self.run("mount", "-o", "loop", image, path)
        }
    }

    private var filler: URL { URL(fileURLWithPath: path + "/filler") }

    private func free(_ path: String) throws -> Int {
        let figures = try FileManager.default.attributesOfFileSystem(forPath: path)
        guard let free = figures[.systemFreeSize] as? NSNumber else { throw DeadlineExceeded("\(path) has a size") }
        return free.intValue
    }

    // MARK: Making

    private func make() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        switch kind {
        case .memory:
            try Self.run("mount", "-t", "tmpfs", "-o", "size=\(Self.kilobytesMax >> 3)k,mode=0700", "tmpfs", path)
        case .image:
            try FileManager.default.createDirectory(atPath: memoryFolder, withIntermediateDirectories: true)
            try Self.run("mount", "-t", "tmpfs", "-o", "size=\(Self.kilobytesMax)k", "tmpfs", memoryFolder)
            try Self.run("truncate", "-s", "256m", image)
            // Metadata has its blocks from the start: only contents of files may find none.
            try Self.run(
                "mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", "-J", "size=8", image)
            try Self.run("mount", "-o", "loop", image, path)
        }
    }

    private func remove() {
        try? Self.run("umount", "-l", path)
        if kind == .image { try? Self.run("umount", "-l", memoryFolder) }
        try? FileManager.default.removeItem(atPath: path)
        try? FileManager.default.removeItem(atPath: memoryFolder)
    }

    private static func run(_ arguments: String..., accepting codes: Set<Int32> = [0]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard codes.contains(process.terminationStatus) else {
            throw DeadlineExceeded("\(arguments.joined(separator: " ")) works (\(process.terminationStatus))")
        }
    }
}
