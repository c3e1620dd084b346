import Synchronization

/// The folder that contains the backups of a service: a subfolder each, under the folder the operator chose and nowhere
/// else.
///
/// A backup is what `Store.backup` writes, plus the file `service`, which names the service: one service's data must
/// never be restored for another. It is written under a hidden name and renamed when it is complete, so that a folder
/// with a backup's name is a finished backup; what a crash leaves behind has a hidden name, and `removeLeftovers`
/// removes it.
public struct BackupFolder: Sendable, Hashable {
    /// The path of the folder.
    public let path: String
    /// The service's name on the wire, e.g. `messages`.
    public let service: String

    public init(_ path: String, service: String) {
        self.path = path
        self.service = service
    }

    /// The folders into which this process is writing a backup: one at a time into each, since a backup occupies a
    /// reader thread.
    private static let written = Mutex<Set<BackupFolder>>([])

    /// Writes a copy of `store` into a new folder `name`, which must be a plain file name, and returns the version it
    /// holds. Nil when something of that name exists. Throws `.locked` while another backup is being written. The
    /// duration grows with the size of the data: call it on a reader thread.
    public func write(_ name: String, of store: any Store) throws(StoreError) -> UInt64? {
        guard Self.written.withLock({ $0.insert(self).inserted }) else {
            throw .locked("another backup is being written into \(path)")
        }
        defer { _ = Self.written.withLock { $0.remove(self) } }
        let target = "\(path)/\(name)"
        if Files.exists(target) { return nil }
        try Files.createFolder(path)
        let desk = "\(path)/.\(name).\(UInt32.random(in: .min ... .max))\(Self.unfinished)"
        defer { Files.removeFolder(desk) }
        try Files.createNewFolder(desk)
        let hold = try OpenFile(desk, access: .read)
        // The lock distinguishes the folder from a leftover; it lasts as long as this value.
        defer { withExtendedLifetime(hold) {} }
        guard try hold.lock() else { throw .locked("\(desk) is taken") }
        let draft = desk + "/draft"
        let version = try store.backup(to: draft)
        try Self.note(service, in: draft)
        try Failpoint.backupBeforeRename.passOrFail()
        guard try Files.renameFolder(draft, to: target) else { return nil }
        Failpoint.backupAfterRename.pass()
        return version
    }

    /// Removes what backups that were interrupted by a crash have left behind; one that is being written stays. What
    /// cannot be removed stays too: it costs disk space only.
    public func removeLeftovers() {
        guard let names = try? Files.names(in: path) else { return }
        for name in names where name.hasPrefix(".") && name.hasSuffix(Self.unfinished) {
            let desk = "\(path)/\(name)"
            guard let hold = try? OpenFile(desk, access: .read), (try? hold.lock()) == true else { continue }
            withExtendedLifetime(hold) { Files.removeFolder(desk) }
        }
    }

    private static let unfinished = ".new"

    /// Writes down which service the data in `folder` belongs to.
    package static func note(_ service: String, in folder: String) throws(StoreError) {
        try Files.write(Array("\(service)\n".utf8), to: serviceFile(in: folder))
    }

    /// The service whose data or backup is in `folder`; nil when that is not noted.
    package static func service(of folder: String) throws(StoreError) -> String? {
        guard Files.exists(serviceFile(in: folder)) else { return nil }
        let text = String(decoding: try Files.read(serviceFile(in: folder)), as: UTF8.self)
        let words = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard words.count == 2, words[1].isEmpty, !words[0].isEmpty else {
            throw .corrupted("\(serviceFile(in: folder)) does not name a service")
        }
        return String(words[0])
    }

    private static func serviceFile(in folder: String) -> String { folder + "/service" }
}
