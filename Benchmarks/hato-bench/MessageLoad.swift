import Foundation
import HatoModel
import HatoRPC
import HatoTesting

/// Writes many chat messages fast, as an administrator: updates of some hundred messages each, several in flight.
///
/// They arrive as in years of use: in the order of their dates, each into another room. Keys rise with the dates, and
/// texts differ, so that storage does not compress them to nothing.
struct MessageLoad: Sendable {
    /// The room of the message with a given number.
    enum Rooms: Sendable {
        case one(String)
        /// Every tenth message into `large`, the others into so many rooms at random.
        case many(Int, large: String)

        static func name(_ number: Int) -> String { "room\(number)" }
    }

    /// Larger writes are prepared beside the writer, and again when a write before them touches the same rooms: calls
    /// of 350 wrote twice as many a second as calls of 3,000.
    private static let messagesPerCall = 350
    private static let inFlightMax = 8
    private static let words = [
        "いま", "帰る", "から", "ごはん", "明日", "学校", "写真", "送って", "ありがとう", "駅で", "待ってる", "おはよう", "電話",
        "して", "ください", "映画", "見た", "面白かった", "少し", "遅れる", "ok", "see you", "later", "hello", "today", "lunch",
        "meeting", "at", "noon", "home", "train", "rain",
    ].map { Array("\($0) ".utf8) }

    var port: Int
    var administratorKey: String
    var rooms: Rooms

    /// Returns the size of the messages as JSON. Ends when all have a response.
    @discardableResult
    func write(_ count: Int, bytesMax: Int = .max) throws -> (messages: Int, bytes: Int) {
        let socket = try RawSocket(port: port, signedInWith: administratorKey)
        defer { socket.close() }
        var calls = PipelinedCalls(socket, Messages.Update.method, inFlightMax: Self.inFlightMax)
        var random = SeededRandom(seed: 1)
        let start = Clock.now()
        var said = start
        var written = (messages: 0, bytes: 0)
        while written.messages < count, written.bytes < bytesMax {
            let range = written.messages..<min(written.messages + Self.messagesPerCall, count)
            let (line, bytes) = page(range, &random)
            try calls.send(line)
            written = (range.upperBound, written.bytes + bytes)
            let now = Clock.now()
            if now - said > 10_000_000_000 {
                said = now
                Progress.say(text(written.messages, since: start))
            }
        }
        try calls.finish()
        Progress.say(text(written.messages, since: start))
        return written
    }

    private func text(_ messages: Int, since start: UInt64) -> String {
        let seconds = Double(Clock.now() - start) / 1e9
        let rate = Figure.text((Double(messages) / seconds).rounded())
        return "\(Figure.text(Double(messages))) messages written in \(Figure.text(seconds.rounded())) s, \(rate)/s"
    }

    private func page(_ range: Range<Int>, _ random: inout SeededRandom) -> (line: [UInt8], bytes: Int) {
        var out: [UInt8] = []
        out.reserveCapacity(range.count * 400)
        out += "{\"jsonrpc\":\"2.0\",\"id\":\(RequestID.first),\"method\":\"\(Messages.Update.method)\",".utf8
        out += "\"params\":{\"path\":\"/chats\",\"values\":{".utf8
        var bytes = 0
        for number in range {
            if number > range.lowerBound { out.append(UInt8(ascii: ",")) }
            out += "\"\(room(number, &random))/messages/\(Self.key(number))\":".utf8
            let begin = out.count
            Self.append(number, &random, to: &out)
            bytes += out.count - begin
        }
        out += "}}}\n".utf8
        return (out, bytes)
    }

    private func room(_ number: Int, _ random: inout SeededRandom) -> String {
        switch rooms {
        case .one(let name): name
        case .many(let count, let large):
            number.isMultiple(of: 10) ? large : Self.Rooms.name(Int(random.next() % UInt64(count)))
        }
    }

    /// As long as a push key, and before all that are made now.
    private static func key(_ number: Int) -> String {
        let digits = String(number)
        return "-A" + String(repeating: "0", count: 18 - digits.count) + digits
    }

    private static func append(_ number: Int, _ random: inout SeededRandom, to out: inout [UInt8]) {
        out += "{\"date\":\(1_700_000_000_000 + number * 9),\"senderId\":\"user\(number % 5_003)\",".utf8
        out += "\"senderName\":\"マスオさん\",\"text\":\"".utf8
        var bits: UInt64 = 0
        for place in 0..<20 {
            if place.isMultiple(of: 10) { bits = random.next() }
            out += words[Int(bits % UInt64(words.count))]
            bits /= UInt64(words.count)
        }
        out += "\(number)\"}".utf8
    }
}
