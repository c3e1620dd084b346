import HatoModel
import HatoRPC

/// The posted and read data: chat messages of about 200 bytes and four fields, in rooms indexed by date.
enum ChatRequests {
    static func message(_ number: Int, text: String? = nil) -> JSONValue {
        let filled = text ?? "Message \(number) " + String(repeating: "いま帰る ", count: 7)
        return [
            "date": .number(Double(1_795_000_000_000 + number)), "senderId": .string("user\(number % 1_000)"),
            "senderName": "マスオさん", "text": .string(filled),
        ]
    }

    /// A write that the rules of a chat allow to a member: a message of the member's own, with the server's date.
    static func ownMessage(_ number: Int, uid: String, text: String? = nil) -> JSONValue {
        let filled = text ?? "Message \(number) " + String(repeating: "いま帰る ", count: 7)
        return [
            "date": [".sv": "timestamp"], "senderId": .string(uid), "senderName": "マスオさん", "text": .string(filled),
        ]
    }

    static func push(room: String, _ message: JSONValue) -> EncodedJSON {
        EncodedJSON(.object(["path": .string("/chats/\(room)/messages"), "value": message]))
    }

    /// The params of pushes into one room, to be sent in turn.
    static let pushesIntoOneRoom = (0..<4_096).map { push(room: "bench", message($0)) }

    /// The same into many rooms.
    static let pushes = (0..<4_096).map { push(room: "bench\($0 % 97)", message($0)) }

    static func newest(_ limit: Int, room: String) -> EncodedJSON {
        EncodedJSON(
            .object([
                "path": .string("/chats/\(room)/messages"),
                "query": ["orderBy": "date", "limitToLast": .number(Double(limit))],
            ]))
    }

    /// A request as a line.
    static func line(_ method: String, _ params: [UInt8], id: Int = RequestID.first) -> [UInt8] {
        Array("{\"jsonrpc\":\"2.0\",\"id\":\(id),\"method\":\"\(method)\",\"params\":".utf8) + params
            + Array("}\n".utf8)
    }
}
