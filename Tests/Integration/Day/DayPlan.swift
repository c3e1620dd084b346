import Foundation
import HatoModel
import HatoTesting

/// The chats of a day: the lines of a log, with users of the test in place of its senders.
struct DayPlan: Sendable {
    struct Line: Sendable {
        /// Its place in the day, in milliseconds.
        var time: Int64
        /// The index of its sender among the members.
        var sender: Int
        var text: String
    }

    struct Chat: Sendable {
        var id: String
        /// Users by their numbers.
        var members: [Int]
        /// Whether it is one of the chats of two.
        var isOfTwo: Bool { members.count == 2 }
        var lines: [Line]
    }

    static let usersCount = 50

    var chats: [Chat]
    var count: Int { chats.reduce(0) { $0 + $1.lines.count } }

    /// The log of `HATO_DAY`, or some hundred lines that are made here.
    ///
    /// - Throws: when the log cannot be read.
    init(_ random: inout SeededRandom) throws {
        let environment = ProcessInfo.processInfo.environment
        var rooms: [(name: String, lines: [(at: Int64, sender: String, text: String)])]
        if let path = environment["HATO_DAY"] {
            rooms = try Self.rooms(
                of: path, count: environment["HATO_DAY_MESSAGES"].flatMap { Int($0) } ?? .max)
        } else {
            rooms = Self.madeRooms(&random)
        }
        // Each user is in a chat.
        var users: [Int] = []
        chats = []
        for (number, room) in rooms.enumerated() {
            let count = 2 + number % 4
            if users.count < count { users += Array(0..<Self.usersCount).shuffled(using: &random) }
            var members: [Int] = []
            while members.count < count {
                let user = users.removeFirst()
                if !members.contains(user) { members.append(user) }
                if users.isEmpty { users = Array(0..<Self.usersCount).shuffled(using: &random) }
            }
            let start = room.lines.first?.at ?? 0
            chats.append(
                Chat(
                    id: "c\(number)", members: members,
                    lines: room.lines.map { line in
                        let sender = line.sender.utf8.reduce(5) { ($0 &* 31 &+ Int($1)) & 0xFFFF } % count
                        return Line(time: line.at - start, sender: sender, text: line.text)
                    }))
        }
    }

    /// The rooms of a log as `hato-messages import-chats` reads it.
    private static func rooms(
        of path: String, count: Int
    ) throws -> [(name: String, lines: [(at: Int64, sender: String, text: String)])] {
        var rooms: [(name: String, lines: [(at: Int64, sender: String, text: String)])] = []
        var numbers: [String: Int] = [:]
        for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
            let json = try JSONParser.parse(Array(line.utf8))
            guard let name = json["room"]?.string, let at = json["at"]?.number,
                let sender = json["sender"]?.string,
                let text = json["text"]?.string, !text.isEmpty
            else { continue }
            let number = numbers[name] ?? rooms.count
            if numbers[name] == nil {
                numbers[name] = number
                rooms.append((name, []))
            }
            rooms[number].lines.append((Int64(at), sender, text))
        }
        // As much of each room.
        let share = rooms.isEmpty ? 0 : (count - 1) / rooms.count + 1
        return rooms.map { ($0.name, Array($0.lines.prefix(share))) }
    }

    private static func madeRooms(
        _ random: inout SeededRandom
    ) -> [(name: String, lines: [(at: Int64, sender: String, text: String)])] {
        let texts = [
            "いまから帰ります", "おかえりですー", "👨‍👩‍👧‍👦 ごはんですよ", "ok", "where are you?", "\"{after.text}\" {uid}",
            "é\u{301}\t…",
        ]
        return (0..<20).map { room in
            let lines = (0..<20).map { number in
                let text = texts[Int.random(in: texts.indices, using: &random)]
                return (
                    at: Int64.random(in: 0..<86_400_000, using: &random),
                    sender: "s\(Int.random(in: 0..<9, using: &random))", text: "\(text) \(number)"
                )
            }
            return ("r\(room)", lines.sorted { $0.at < $1.at })
        }
    }

    /// The lines of some chats in the order of the day: the indexes of a chat and its line.
    func order(of chats: [Int]) -> [(chat: Int, line: Int)] {
        let all = chats.flatMap { chat in self.chats[chat].lines.indices.map { (chat: chat, line: $0) }
        }
        return all.sorted { first, second in
            let (one, other) = (
                self.chats[first.chat].lines[first.line], self.chats[second.chat].lines[second.line]
            )
            return (one.time, first.chat, first.line) < (other.time, second.chat, second.line)
        }
    }
}

/// What a user has of a chat, as the model has it.
struct DayUnread: Sendable {
    /// The number in the tree.
    var count = 0
    /// The messages that are not read and not deleted, by key, as a phone shows them.
    var messages: [String: String] = [:]

    /// How a phone shows a message.
    static func text(_ title: String?, _ body: String?) -> String {
        "\(title ?? "-") | \(body ?? "-")"
    }
}
