import Crypto
import HatoStorage

/// The contents of a backup: the file `copy`, which names every other file with its size and checksum.
///
/// RocksDB detects damage within a file, but not every missing file: without one of two logs it opens as a history with
/// a gap. So nothing of a backup is opened before all of it is verified against this list.
///
/// The file is text, a line each: `hato-backup 1`, then `SIZE SHA-256 NAME` for every file, last the SHA-256 of the
/// lines above. While a backup is opened for the first time the file says `opening` instead: from then on its files
/// change.
struct BackupContents: Hashable {
    private static let title = "hato-backup 1"
    private static let opening = "opening\n"

    private struct Entry: Hashable {
        var bytes: Int
        var checksum: String
    }

    /// By name, e.g. `rocksdb/CURRENT`.
    private var entries: [String: Entry] = [:]

    /// Writes the file `copy` of the backup in `folder`; all files that it names are on disk when this returns.
    static func write(in folder: String) throws(StoreError) {
        let contents = try BackupContents(reading: folder)
        let lines = contents.entries.sorted { $0.key < $1.key }.map { "\($1.bytes) \($1.checksum) \($0)" }
        let text = ([title] + lines).map { $0 + "\n" }.joined()
        try Files.write(Array((text + hex(SHA256.hash(data: Array(text.utf8))) + "\n").utf8), to: folder + "/copy")
    }

    /// Throws when the folder holds something other than the files of the backup: the list does not cover such a file,
    /// and it must not become part of a store.
    static func checkNames(_ names: Set<String>, of backup: String) throws(StoreError) {
        let known: Set = ["copy", "format", "service", "answered", "rocksdb", "lock"]
        guard let name = names.subtracting(known).min() else { return }
        throw .io("\(backup)/\(name) is no part of the backup; move it elsewhere, then restore again")
    }

    /// Throws `.corrupted`, which names the file, when something of the backup is not as it was written. Errors use
    /// `name` for the folder. Does nothing when the backup has been checked and opened before.
    static func check(_ folder: String, name: String) throws(StoreError) {
        if try isBeingOpened(folder) { return }
        let (wanted, found) = (try BackupContents(listedIn: folder, name: name), try BackupContents(reading: folder))
        for (file, entry) in wanted.entries.sorted(by: { $0.key < $1.key }) {
            guard let there = found.entries[file] else { throw .corrupted("\(name)/\(file) is missing") }
            guard there.bytes == entry.bytes else {
                throw .corrupted("\(name)/\(file) has \(there.bytes) bytes, \(entry.bytes) were written")
            }
            guard there == entry else { throw .corrupted("\(name)/\(file) is not as it was written") }
        }
        if let file = found.entries.keys.filter({ wanted.entries[$0] == nil }).min() {
            throw .corrupted("\(name)/\(file) is no part of the backup")
        }
    }

    /// Notes that the files may change from now on, because they belong to a store.
    static func noteOpening(_ folder: String) throws(StoreError) {
        try Files.write(Array(opening.utf8), to: folder + "/copy")
    }

    static func isBeingOpened(_ folder: String) throws(StoreError) -> Bool {
        try Files.read(folder + "/copy") == Array(opening.utf8)
    }

    /// Reads the list in the file `copy`.
    private init(listedIn folder: String, name: String) throws(StoreError) {
        let damage = StoreError.corrupted("\(name)/copy does not say what the backup consists of")
        let text = String(decoding: try Files.read(folder + "/copy"), as: UTF8.self)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        // After the last line break, splitting leaves an empty line.
        guard lines.count >= 3, lines.first?[...] == Self.title[...], lines.last == "" else { throw damage }
        let listed = lines.dropLast(2)
        let checked = listed.map { $0 + "\n" }.joined()
        guard lines[lines.count - 2] == Self.hex(SHA256.hash(data: Array(checked.utf8))) else { throw damage }
        for line in listed.dropFirst() {
            let words = line.split(separator: " ", maxSplits: 2)
            guard words.count == 3, let bytes = Int(words[0]) else { throw damage }
            entries[String(words[2])] = Entry(bytes: bytes, checksum: String(words[1]))
        }
    }

    /// Lists the files that exist in `folder`.
    private init(reading folder: String) throws(StoreError) {
        let names = try Files.names(in: folder).filter { $0 == "answered" } + Self.database(in: folder)
        for name in names { entries[name] = try Self.entry(of: "\(folder)/\(name)") }
    }

    private static func database(in folder: String) throws(StoreError) -> [String] {
        guard Files.exists(folder + "/rocksdb") else { return [] }
        return try Files.names(in: folder + "/rocksdb").map { "rocksdb/\($0)" }
    }

    private static func entry(of path: String) throws(StoreError) -> Entry {
        let file = try OpenFile(path, access: .read)
        var (hash, bytes, buffer) = (SHA256(), 0, [UInt8](repeating: 0, count: 1 << 18))
        while true {
            let count = try file.read(into: &buffer)
            if count == 0 { break }
            buffer.withUnsafeBytes { hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            bytes += count
        }
        // RocksDB does not sync all the files it copies.
        try file.sync()
        return Entry(bytes: bytes, checksum: hex(hash.finalize()))
    }

    private static func hex(_ digest: SHA256.Digest) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
