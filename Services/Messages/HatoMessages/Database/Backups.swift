import FoundationEssentials
import HatoStorage

/// Where backups go: one folder each, under the folder the operator chose and nowhere else.
struct Backups: Sendable {
    var folder: String?

    /// `[A-Za-z0-9._-]{1,100}`, not starting with a dot: no name leads out of the folder.
    static func isName(_ name: String) -> Bool {
        guard (1...100).contains(name.utf8.count), name.utf8.first != UInt8(ascii: ".") else { return false }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                true
            default: false
            }
        }
    }

    /// Writes a copy of `store` and tells the version it holds at least. On a reader thread: it takes as long as it
    /// takes.
    func write(_ name: String, of store: any Store) throws -> UInt64 {
        guard let folder else { throw MessagesError.backupsOff }
        let path = folder + "/" + name
        guard !FileManager.default.fileExists(atPath: path) else { throw MessagesError.backupExists(name) }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let version = store.version
        try store.backup(to: path)
        return version
    }
}
