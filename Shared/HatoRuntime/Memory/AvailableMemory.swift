#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The memory that this process may use: the lowest limit of the cgroups it is in, otherwise the machine's.
public enum AvailableMemory {
    /// The maximum of the default of `memory-bytes`.
    public static let defaultBytesMax = 1_536 << 20

    /// The default of `memory-bytes`: four fifths of the available memory, at most 1.5 GiB. A cgroup's limit also
    /// counts the buffers of sockets, and the kernel kills a process that exceeds it; a machine has other processes.
    public static func defaultBytes(available: Int) -> Int { min(defaultBytesMax, available / 5 * 4) }

    /// The available memory in bytes.
    public static let bytes: Int = {
        let machine = machineBytes
        let limit = Cgroups(
            membership: text("/proc/self/cgroup") ?? "", mounts: text("/proc/self/mountinfo") ?? ""
        ).memoryLimit(reading: text)
        return limit.map { min($0, machine) } ?? machine
    }()

    private static var machineBytes: Int {
        let (pages, size) = (sysconf(Int32(_SC_PHYS_PAGES)), sysconf(Int32(_SC_PAGESIZE)))
        let (bytes, overflow) = pages.multipliedReportingOverflow(by: size)
        return overflow || bytes <= 0 ? defaultBytesMax : bytes
    }

    /// The text of a kernel file, whose size is not known before it is read; nil when it cannot be read.
    private static func text(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var (bytes, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 16 << 10))
        while bytes.count < 1 << 20 {
            let count = read(descriptor, &chunk, chunk.count)
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Finds the limit files of the cgroups of a process, of version 1 and 2 (cgroups(7), proc_pid_mountinfo(5)). Pure
/// except for the function that reads files.
struct Cgroups: Sendable {
    /// The text of `/proc/self/cgroup`: lines `number:controllers:path`; in version 2 number 0 and no controllers.
    var membership: String
    /// The text of `/proc/self/mountinfo`: field 4 is the mounted part of the file system, field 5 the mount point, and
    /// after a `-` follow its type, its source and its options.
    var mounts: String

    /// Version 1 reports values from here on, in pages, for "no limit".
    private static let limitMax = 1 << 60

    /// The lowest limit of all cgroups and their parents, in bytes; nil when there is none.
    func memoryLimit(reading text: (String) -> String?) -> Int? {
        let limits = files.compactMap { file -> Int? in
            guard let words = text(file)?.split(whereSeparator: \.isWhitespace), words.count == 1 else { return nil }
            return Int(words[0]).flatMap { $0 > 0 && $0 < Self.limitMax ? $0 : nil }
        }
        return limits.min()
    }

    /// The files that may hold a limit.
    var files: [String] {
        membership.split(separator: "\n").flatMap { line -> [String] in
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { return [] }
            if fields[0] == "0", fields[1].isEmpty {
                return files(named: "memory.max", of: fields[2]) { type, _ in type == "cgroup2" }
            }
            guard fields[1].split(separator: ",").contains("memory") else { return [] }
            return files(named: "memory.limit_in_bytes", of: fields[2]) { type, options in
                type == "cgroup" && options.split(separator: ",").contains("memory")
            }
        }
    }

    private func files(
        named name: String, of group: Substring, where isWanted: (_ type: Substring, _ options: Substring) -> Bool
    ) -> [String] {
        for line in mounts.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard let dash = fields.firstIndex(of: "-"), dash > 4, fields.count > dash + 3,
                isWanted(fields[dash + 1], fields[dash + 3])
            else { continue }
            return Self.folders(of: group, root: fields[3], mountedAt: fields[4]).map { "\($0)/\(name)" }
        }
        return []
    }

    /// The folder of a cgroup and its parents, as far as they are mounted. A path outside of the mount belongs to
    /// another namespace: only the mount point is visible then.
    private static func folders(of group: Substring, root: Substring, mountedAt mount: Substring) -> [String] {
        let (group, root) = (group.split(separator: "/"), root.split(separator: "/"))
        guard group.starts(with: root), !group.contains("..") else { return [String(mount)] }
        let below = group.dropFirst(root.count)
        return (0...below.count).reversed().map { count in
            ([mount] + below.prefix(count)).joined(separator: "/")
        }
    }
}
