/// Where the backups of a service go: a folder each, under the one the operator chose and nowhere else.
///
/// A backup is what `Store.backup` writes, and beside it the file `service`, which says whose it is: one service's data
/// must never be restored for another. It is written under a hidden name and renamed when it is whole, so that a folder
/// with a backup's name is a finished backup; what a crash leaves behind is hidden and may be deleted.
public struct BackupFolder: Sendable, Hashable {
    public let path: String
    /// The service's name on the wire, e.g. `messages`.
    public let service: String

    public init(_ path: String, service: String) {
        self.path = path
        self.service = service
    }

    /// Writes a copy of `store` into a new folder `name`, which must be a plain file name, and tells the version up to
    /// which it surely holds everything. Nil when there is something of that name already. Takes as long as there is
    /// data: for a reader thread.
    public func write(_ name: String, of store: any Store) throws(StoreError) -> UInt64? {
        let target = "\(path)/\(name)"
        if Files.exists(target) { return nil }
        try Files.createFolder(path)
        let draft = "\(path)/.\(name).\(UInt32.random(in: .min ... .max)).new"
        do throws(StoreError) {
            let version = store.version
            try store.backup(to: draft)
            try Files.write(Array("\(service)\n".utf8), to: Self.serviceFile(in: draft))
            guard try Files.renameFolder(draft, to: target) else {
                Files.removeFolder(draft)
                return nil
            }
            return version
        } catch {
            Files.removeFolder(draft)
            throw error
        }
    }

    /// Whose backup lies in `folder`; nil when no backup of a service does.
    package static func service(of folder: String) throws(StoreError) -> String? {
        guard Files.exists(serviceFile(in: folder)) else { return nil }
        let text = String(decoding: try Files.read(serviceFile(in: folder)), as: UTF8.self)
        return text.split(whereSeparator: \.isWhitespace).first.map(String.init)
    }

    private static func serviceFile(in folder: String) -> String { folder + "/service" }
}
