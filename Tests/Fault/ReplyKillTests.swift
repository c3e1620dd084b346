import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Synchronization
import Testing

/// `kill -9` of the notifier while users reply to notifications: each reply is in the chat once, or reported to the URL
/// of its action under one id, also when the notifier is killed after the effect and before its record.
@Suite("Replies while the notifier is killed", .serialized, .timeLimit(.minutes(30)))
struct ReplyKillTests {
    private static let places: FaultSettings.Places = [
        ("push.afterEffect", 1...20), ("commit.beforeSync", 30...120), ("commit.afterSync", 30...120),
        ("commit.beforeAnswer", 30...120), ("push.afterResponse", 1...20), (nil, 1...30),
    ]

    @Test func everyReplyIsInTheChatOnce() async throws {
        var random = SeededRandom(seed: UInt64(FaultSettings.seed))
        let places = FaultSettings.chosen(Self.places)
        print("kills, replies: HATO_FAULT_SEED=\(FaultSettings.seed) HATO_FAULT_KILLS=\(FaultSettings.kills)")
        let receiver = try await RepeatingReceiver()
        try await FaultStack.run(.apart) { stack in
            let chat = try await RepliedChat(stack, receiver)
            for _ in 0..<FaultSettings.kills {
                for (name, counts) in places.shuffled(using: &random) {
                    try await chat.round(KillPlace(name: name, count: Int.random(in: counts, using: &random)))
                }
            }
            try await chat.check()
            let bodies = receiver.bodies
            for (id, bodies) in bodies { #expect(Set(bodies).count == 1, "\(id) has several bodies") }
            print(
                "kills, replies: \(places.count * FaultSettings.kills) kills, \(bodies.count) deliveries, "
                    + "\(bodies.values.count { $0.count > 1 }) of them repeated, \(chat.count) replies, "
                    + "\(chat.repeated) of them sent again")
        }
        await receiver.stop()
    }
}

/// A chat whose members get notifications, and reply to each with the token of the push.
private final class RepliedChat: Sendable {
    private struct Member: Sendable {
        var uid: String
        var device: String
    }

    private static let path = "/chats/replied/messages"

    private let stack: FaultStack
    private let receiver: RepeatingReceiver
    private let members: [Member]
    /// The titles of the notifications by member.
    private let titles = Mutex<[[String]]>([])
    private let repetitions = Mutex(0)

    var count: Int { titles.withLock { $0.reduce(0) { $0 + $1.count } } }
    var repeated: Int { repetitions.withLock { $0 } }

    init(_ stack: FaultStack, _ receiver: RepeatingReceiver) async throws {
        (self.stack, self.receiver) = (stack, receiver)
        let (auth, messages, notifier) = (stack.client(.auth), stack.client(.messages), stack.client(.notifier))
        _ = try await messages.call(Messages.Rules.Set(rules: FaultStack.rules))
        let reply = Notifier.CategoryAction.reply(
            id: "REPLY", title: .init("Reply"),
            effect: .init(
                push: .init(path: Self.path, value: ["senderId": "{uid}", "text": "{text}"])))
        let report = Notifier.CategoryAction.reply(
            id: "REPORT", title: .init("Report"), effect: .webhook(receiver.url("reports")))
        _ = try await notifier.call(Notifier.Categories.Set(.init(id: "REPLIED", actions: [reply, report])))
        var members: [Member] = []
        for number in 0..<4 {
            let uid = try #require(try await auth.call(Auth.SignUp()).session).uid
            let register = Notifier.Devices.Register(url: receiver.url("\(number)"), uid: uid)
            members.append(Member(uid: uid, device: try await notifier.call(register).device))
        }
        self.members = members
        titles.withLock { $0 = members.map { _ in [] } }
        for client in [auth, messages, notifier] { await client.close() }
    }

    /// One kill.
    func round(_ place: KillPlace) async throws {
        try await stack.killAndRestart(.notifier, failpoints: place.failpoints)
        let program = try #require(stack.program(.notifier))
        let killing = place.name == nil ? kill(program, after: place.count) : nil
        // The last reply of each member has no response.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for member in members.indices { group.addTask { try await self.replyUntilItDies(member, program) } }
            try await group.waitForAll()
        }
        if let killing {
            await killing.value
        } else {
            #expect(await program.diedAtFailpoint(), "\(place.text)")
        }
        try await stack.killAndRestart(.notifier)
        let client = stack.client(.notifier)
        for (member, titles) in titles.withLock({ $0 }).enumerated() {
            guard let title = titles.last else { continue }
            _ = try await client.call(request(title, to: member))
            _ = try await waiting(for: "\(place.text): \(title)") { self.reply(to: title, member) }
            // As an app without a response does.
            repetitions.withLock { $0 += 1 }
            _ = try await waiting(for: "\(place.text): the reply to \(title)") {
                let result = try await self.respond(to: title, member, client)
                return result.effect == .done ? true : nil
            }
        }
        await client.close()
    }

    private func kill(_ program: Program, after count: Int) -> Task<Void, Never> {
        let goal = receiver.count + count
        return Task { [receiver] in
            try? await eventually("\(goal) deliveries", within: FaultSettings.patience) { receiver.count >= goal }
            await program.kill()
        }
    }

    private func replyUntilItDies(_ member: Int, _ program: Program) async throws {
        let client = stack.client(.notifier)
        var isAlive = true
        while isAlive {
            let title = titles.withLock { titles in
                titles[member].append("n\(member).\(titles[member].count)")
                return titles[member].last ?? ""
            }
            do { _ = try await client.call(request(title, to: member)) } catch { break }
            isAlive = try await waiting(for: "the delivery of \(title)") {
                if self.reply(to: title, member) != nil { return true }
                return await program.isRunning ? nil : false
            }
            guard isAlive else { break }
            do {
                // `respond` waits ten seconds for an effect, which may be tried again when the machine is slow.
                _ = try await waiting(for: "the effect of \(title)") {
                    let result = try await self.respond(to: title, member, client)
                    #expect(result.effect == .done || result.effect == .pending, "\(title): \(result)")
                    return result.effect == .pending ? nil : true
                }
            } catch { isAlive = false }
        }
        _ = try await waiting(for: "the end of the notifier") { await program.isRunning ? nil : true }
        await client.close()
    }

    /// Every second one is reported.
    private static func action(_ title: String) -> String {
        title.last?.wholeNumberValue?.isMultiple(of: 2) == true ? "REPLY" : "REPORT"
    }

    private func request(_ title: String, to member: Int) -> Notifier.Send {
        var send = Notifier.Send(to: .init(uids: [members[member].uid]), notification: .init(title: title))
        (send.idempotencyKey, send.category) = (title, "REPLIED")
        return send
    }

    private func reply(to title: String, _ member: Int) -> RepeatingReceiver.Reply? {
        receiver.reply(to: title, at: members[member].device)
    }

    private func respond(
        to title: String, _ member: Int, _ client: RPCClient
    ) async throws -> Notifier.Respond.Result {
        let reply = try #require(self.reply(to: title, member))
        var respond = Notifier.Respond(
            notification: reply.notification, action: Self.action(title), replyToken: reply.token)
        respond.text = title
        return try await client.call(respond)
    }

    /// Each reply stands in the tree once, as that of its member, or was reported under one id, and each notification
    /// came to its device.
    func check() async throws {
        let reported = titles.withLock { $0.flatMap(\.self) }.filter { Self.action($0) == "REPORT" }
        try await eventually("\(reported.count) reports", within: FaultSettings.patience) {
            receiver.reports.count == reported.count
        }
        #expect(Set(receiver.reports.keys) == Set(reported))
        for (title, ids) in receiver.reports { #expect(ids.count == 1, "\(title) was reported as \(ids)") }
        let client = stack.client(.messages)
        let node = try await client.call(Messages.Get(path: try TreePath(Self.path)))
        await client.close()
        let messages = node.value.object?.members.map(\.value) ?? []
        for (member, titles) in titles.withLock({ $0 }).enumerated() {
            let uid = members[member].uid
            let replies = messages.filter { $0["senderId"]?.string == uid }.compactMap { $0["text"]?.string }
            #expect(replies.sorted() == titles.filter { Self.action($0) == "REPLY" }.sorted(), "member \(member)")
            #expect(receiver.titles(of: members[member].device).sorted() == titles.sorted(), "member \(member)")
        }
        #expect(messages.count == count - reported.count)
    }
}
