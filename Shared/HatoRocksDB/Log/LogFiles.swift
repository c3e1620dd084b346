import HatoStorage

/// The files of a database's log: `NNNNNN.log`, each number higher than all before it and used once.
enum LogFiles {
    /// Their numbers, rising; none when there is no such folder.
    static func numbers(in folder: String) -> [UInt64] {
        let names = (try? Files.names(in: folder)) ?? []
        return names.compactMap { $0.hasSuffix(".log") ? UInt64($0.dropLast(4)) : nil }.sorted()
    }

    static func path(_ number: UInt64, in folder: String) -> String {
        let digits = String(number)
        return "\(folder)/\(String(repeating: "0", count: max(0, 6 - digits.count)))\(digits).log"
    }
}
