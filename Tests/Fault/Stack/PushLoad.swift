import Foundation
import HatoModel
import HatoRPC
import Synchronization

/// Pushes numbered messages into one room over several connections, and records the acknowledged ones.
///
/// Even numbers carry a key made here and are sent until they get a response: they must be in the store once. Odd ones
/// are sent once: with a response they must be in the store once, without a response once or not at all.
final class PushLoad: Sendable {
    static let room = "/chats/fault/messages"
    private static let lanes = 8

    struct Answered: Sendable {
        /// Number → key.
        var keys: [Int: String] = [:]
        var unanswered: Set<Int> = []
    }

    let numbers: Range<Int>
    private let stack: FaultStack
    private let state = Mutex(Answered())

    init(_ stack: FaultStack, numbers: Range<Int>) {
        self.stack = stack
        self.numbers = numbers
    }

    var answered: Answered { state.withLock { $0 } }
    var count: Int { state.withLock { $0.keys.count + $0.unanswered.count } }

    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<Self.lanes {
                group.addTask { [self] in
                    let client = stack.client(.messages)
                    for number in numbers where number % Self.lanes == lane { try await push(number, client) }
                    await client.close()
                }
            }
            try await group.waitForAll()
        }
    }

    static func value(_ number: Int) -> JSONValue {
        [
            "date": .number(Double(number)), "senderId": "fault", "senderName": .string("送信者 \(number)"),
            "text": .string("message \(number) \(String(repeating: "鳩", count: number % 50))"),
        ]
    }

    private func push(_ number: Int, _ client: RPCClient) async throws {
        var params: JSONObject = ["path": .string(Self.room), "value": Self.value(number)]
        let isRepeatable = number % 2 == 0
        if isRepeatable {
            let random = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
            let now = Int64(Date().timeIntervalSince1970 * 1_000)
            params["key"] = .string(PushKey(milliseconds: now, random: random).text)
        }
        let key: String? = try await waiting(for: "the response of push \(number)") {
            do {
                return .some(try await client.call(method: "messages.push", params: params)["key"]?.string)
            } catch let error as RPCError where error.code == .unavailable {
                return isRepeatable ? nil : .some(nil)
            }
        }
        state.withLock { state in
            if let key { state.keys[number] = key } else { state.unanswered.insert(number) }
        }
    }
}
