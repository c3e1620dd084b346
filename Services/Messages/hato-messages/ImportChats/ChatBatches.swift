import HatoModel

/// Turns chat lines into updates of the tree, a few hundred messages each.
///
/// A message gets a push key made from its time and content, so that importing the same lines again writes the same
/// nodes: eight characters of time, three that count the messages of one millisecond in a room (their order is kept),
/// nine of a hash over room, sender and text.
struct ChatBatches: Sendable {
    /// Large enough that the sync of a commit does not matter, small enough for a smooth progress bar.
    static let messagesMax = 250

    /// A request can hold a string of the tree's maximum length, and so many bytes before it.
    static let textBytesMax = 1 << 20

    /// An update below the root, and the messages in it.
    struct Batch: Sendable {
        var values = JSONObject()
        var messages: [Message] = []
    }

    /// The keys of a message's path.
    struct Message: Sendable {
        var room: String
        var key: String
    }

    private var batch = Batch()
    private var textBytes = 0
    /// The names in `batch`: a line that is twice in the file is one message.
    private var names: Set<String> = []
    /// Lines that were in their batch already.
    private(set) var repeated = 0
    private var roomsSeen: Set<String> = []
    private var sendersSeen: Set<String> = []
    /// By room: the time of its last message and how many had it before.
    private var lastTimes: [String: (at: Int64, before: Int)] = [:]

    var roomCount: Int { roomsSeen.count }
    var senderCount: Int { sendersSeen.count }
    var isFull: Bool { batch.messages.count >= Self.messagesMax || textBytes >= Self.textBytesMax }

    mutating func add(_ line: ChatLine) {
        let room = KeyEscaping.escape(line.room)
        let sender = KeyEscaping.escape(line.sender)
        if roomsSeen.insert(room).inserted { batch.values.append("chats/\(room)/title", .string(line.room)) }
        if sendersSeen.insert(sender).inserted { batch.values.append("users/\(sender)/name", .string(line.sender)) }
        let before = countBefore(line, room)
        let message = Message(room: room, key: Self.key(of: line, before: before))
        let name = "chats/\(message.room)/messages/\(message.key)"
        guard names.insert(name).inserted else {
            repeated += 1
            return
        }
        batch.values.append(
            name,
            [
                "date": .number(Double(line.at)), "senderId": .string(sender), "senderName": .string(line.sender),
                "text": .string(line.text),
            ])
        batch.messages.append(message)
        textBytes += line.text.utf8.count
    }

    /// Returns the collected messages and begins a new batch.
    mutating func take() -> Batch {
        defer {
            batch = Batch()
            names.removeAll(keepingCapacity: true)
            textBytes = 0
        }
        return batch
    }

    private mutating func countBefore(_ line: ChatLine, _ room: String) -> Int {
        let before = if let last = lastTimes[room], last.at == line.at { last.before + 1 } else { 0 }
        lastTimes[room] = (line.at, before)
        return before
    }

    // MARK: Keys

    private static let alphabet = Array("-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz".utf8)

    static func key(of line: ChatLine, before: Int) -> String {
        String(
            decoding: digits(UInt64(line.at), count: 8) + digits(UInt64(before), count: 3)
                + digits(hash(line), count: 9), as: UTF8.self)
    }

    /// The last `count` digits of a number to the base of 64, in the alphabet of push keys.
    private static func digits(_ number: UInt64, count: Int) -> [UInt8] {
        (0..<count).reversed().map { alphabet[Int(number >> (6 * UInt64($0)) & 63)] }
    }

    /// FNV-1a: different enough for two messages of one millisecond, and the same in every version.
    private static func hash(_ line: ChatLine) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for text in [line.room, line.sender, line.text] {
            for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
            hash = (hash ^ 0xFF) &* 0x100_0000_01b3
        }
        return hash ^ hash >> 32
    }
}
