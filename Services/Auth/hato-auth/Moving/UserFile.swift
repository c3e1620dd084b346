import HatoCommand
import HatoModel

/// The accounts in a file or in stdin, one at a time (`ObjectScanner`).
final class UserFile {
    private let blocks: InputBlocks
    private var scanner = ObjectScanner()
    private var isAtEnd = false
    /// The accounts that were read.
    private(set) var count = 0

    /// `-` is stdin. Throws `CommandFailure`.
    init(path: String) throws(CommandFailure) { blocks = try InputBlocks(path: path) }

    var name: String { blocks.name }
    /// The size in bytes; nil of stdin.
    var size: Int? { blocks.size }
    var bytesRead: Int { blocks.bytesRead }

    /// The next account; nil after the last. Throws `CommandFailure` for a file that is of another form.
    func next() throws(CommandFailure) -> JSONObject? {
        guard let bytes = try nextBytes() else { return nil }
        guard let object = try? JSONParser.parse(bytes).object else {
            throw CommandFailure(.inputOutput, "account \(count) of '\(name)' is not valid JSON")
        }
        return object
    }

    /// Passes over an account without reading it; false after the last.
    func skip() throws(CommandFailure) -> Bool { try nextBytes() != nil }

    private func nextBytes() throws(CommandFailure) -> [UInt8]? {
        while true {
            if let bytes = try scanned({ (scanner) throws(ObjectScanner.Problem) in try scanner.next() }) {
                count += 1
                return bytes
            }
            guard !isAtEnd else { return nil }
            if let block = try blocks.next() {
                scanner.append(block)
            } else {
                isAtEnd = true
                try scanned { (scanner) throws(ObjectScanner.Problem) in try scanner.finish() }
            }
        }
    }

    private func scanned<Found>(
        _ scan: (inout ObjectScanner) throws(ObjectScanner.Problem) -> Found
    ) throws(CommandFailure) -> Found {
        do { return try scan(&scanner) } catch { throw CommandFailure(.inputOutput, "'\(name)' \(error.message)") }
    }
}
