import HatoModel
import HatoRPC
import HatoTesting

/// Chats under the rules of a chat: their members, and the members' posts and reads.
struct ChatRooms: Sendable {
    var names: [String]

    /// Makes a user a member of each, whichever rules are set.
    func admit(_ uid: String, on stack: TestStack) async throws {
        let client = stack.client(.messages, as: .administrator)
        let page = 1_000
        for first in stride(from: 0, to: names.count, by: page) {
            var values = JSONObject()
            for name in names[first..<min(first + page, names.count)] {
                values.append("\(name)/members/\(uid)", "member")
            }
            _ = try await client.call(
                method: Messages.Update.method, params: ["path": "/chats", "values": .object(values)])
        }
        await client.close()
    }

    /// Lines that post a member's own messages into many of the rooms, spread over them.
    func posts(as uid: String) -> [[UInt8]] {
        (0..<4_096).map { number in
            let params = ChatRequests.push(
                room: names[number * 7_919 % names.count], ChatRequests.ownMessage(number, uid: uid))
            return ChatRequests.line(Messages.Push.method, params.bytes)
        }
    }

    /// Lines that read the newest messages of many of the rooms, spread over them.
    func reads(newest limit: Int) -> [[UInt8]] {
        (0..<4_096).map { number in
            let params = ChatRequests.newest(limit, room: names[number * 104_729 % names.count])
            return ChatRequests.line(Messages.Get.method, params.bytes)
        }
    }
}
