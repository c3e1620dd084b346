import HatoModel
import HatoRPC
import HatoRuntime
import HatoTesting
import Synchronization
import TestFirebase
import Testing

/// A day of chats through the trigger that comes along, 50 users, and providers that fail one call in ten: at its end
/// every phone shows what the model says.
///
/// Some hundred messages are made here. `HATO_DAY=FILE` takes a log as `hato-messages import-chats` reads it, with at
/// most `HATO_DAY_MESSAGES` messages.
@Suite(.timeLimit(.minutes(60)))
struct DayOfChats {
    @Test func everyPhoneShowsWhatIsUnreadAtTheEndOfTheDay() async throws {
        let seed = SeededRandom.seed()
        let (phones, provider) = (DayPhones(), FailingProvider(seed: seed))
        var limits = HTTPLimits()
        // As many as attempts at a time.
        limits.connectionsMax = 1_024
        let webhooks = try await HTTPListener(host: "127.0.0.1", port: 0, limits: limits) { request in
            let name = String(request.target.dropFirst())
            let body = (try? JSONParser.parse(request.body)) ?? .null
            return await provider.call { phones.take(name, webhook: body) } ?? HTTPResponse(status: 204)
        }
        let firebase = try await FCMStandIn(limits: limits) { message in
            await provider.call { phones.take(message: message) }
        }
        let result: Result<Void, any Error>
        do {
            // Each message is shown by itself, so that the model need not know when pushes merge.
            let pace = ["--device-interval-ms", "0", "--user-interval-ms", "0"]
            let arguments = ["--rules", "chat", "--triggers", "chat", "--apps-file", firebase.appsFile] + pace
            try await TestStack.run(arguments) { stack in
                var random = SeededRandom(seed: seed)
                let plan = try DayPlan(&random)
                let day = try await Day(stack, plan, webhooks: "http://127.0.0.1:\(webhooks.port)")
                try await day.run(seed: seed, phones)
                try await day.check(phones)
                print("\(provider.text)")
            }
            result = .success(())
        } catch { result = .failure(error) }
        provider.stop()
        await firebase.stop()
        await webhooks.stop()
        try result.get()
    }
}

/// The users of a day, and what they do.
private final class Day: Sendable {
    private struct User: Sendable {
        var session: Auth.Session
        var name: String
        var client: RPCClient
        /// Those at Firebase.
        var phones: [String] = []
        /// Those that are webhooks: without a badge for what they show.
        var webhooks: [String] = []
    }

    private static let lanes = 8
    /// Changes and deliveries that wait while users write on.
    private static let waitingMax = 300

    private let stack: TestStack
    private let plan: DayPlan
    private let users: [User]
    /// By chat, for each of its members.
    private let model: Mutex<[[DayUnread]]>

    init(_ stack: TestStack, _ plan: DayPlan, webhooks: String) async throws {
        (self.stack, self.plan) = (stack, plan)
        model = Mutex(plan.chats.map { $0.members.map { _ in DayUnread() } })
        var users: [User] = []
        for number in 0..<DayPlan.usersCount {
            let name = "利用者 \(number)"
            let session = try #require(
                try await stack.call(Auth.SignUp(displayName: name), of: .auth).session)
            let identity = TestStack.Identity.user(idToken: session.idToken)
            var user = User(session: session, name: name, client: stack.client(.messages, as: identity))
            user.phones = number % 10 == 3 ? ["\(number)a", "\(number)b"] : ["\(number)a"]
            user.webhooks = number % 5 == 0 ? ["\(number)w"] : []
            let notifier = stack.client(.notifier, as: identity)
            for phone in user.phones {
                var register = Notifier.Devices.Register(platform: .fcm)
                register.token = phone
                _ = try await notifier.call(register)
            }
            for webhook in user.webhooks {
                _ = try await notifier.call(Notifier.Devices.Register(url: "\(webhooks)/\(webhook)"))
            }
            await notifier.close()
            users.append(user)
        }
        self.users = users
        for chat in plan.chats {
            let uids = chat.members.map { users[$0].session.uid }
            var node: JSONObject = [:]
            if chat.isOfTwo {
                node["ids"] = ["first_user_id": .string(uids[0]), "second_user_id": .string(uids[1])]
            } else {
                var members: JSONObject = [:]
                for uid in uids { members[uid] = uid == uids[0] ? "admin" : "member" }
                node["members"] = .object(members)
            }
            let client = users[chat.members[0]].client
            _ = try await client.call(
                Messages.Set(path: try TreePath("/chats/\(chat.id)"), value: .object(node)))
        }
        try await eventually("the names are in the tree") {
            let path = try TreePath("/users/\(users[users.count - 1].session.uid)/name")
            return try await users[0].client.call(Messages.Get(path: path)).value != .null
        }
    }

    // MARK: The day

    func run(seed: UInt64, _ phones: DayPhones) async throws {
        let begin = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<Self.lanes {
                group.addTask { [self] in
                    var random = SeededRandom(seed: seed &+ UInt64(lane) &+ 1)
                    let chats = plan.chats.indices.filter { $0 % Self.lanes == lane }
                    for (number, place) in plan.order(of: chats).enumerated() {
                        if number % 8 == 7 { try await wait() }
                        try await say(place.chat, place.line, &random)
                    }
                }
            }
            try await group.waitForAll()
        }
        print(
            "a day of \(plan.count) messages in \(ContinuousClock.now - begin), \(phones.count) pushes so far"
        )
    }

    /// Until the notifier is not far behind.
    private func wait() async throws {
        let client = stack.client(.notifier, as: .administrator)
        try await eventually("the notifier goes on") { try await waiting(client) < Self.waitingMax }
        await client.close()
    }

    /// How many changes are to become notifications, and how many deliveries wait.
    private func waiting(_ client: RPCClient) async throws -> Int {
        let names = ["hato_notifier_changes_waiting", "hato_notifier_deliveries_pending"]
        return try await client.call(Service.Metrics()).text.split(separator: "\n").reduce(0) { sum, line in
            guard names.contains(where: { line.hasPrefix($0) }), let figure = line.split(separator: " ").last else {
                return sum
            }
            return sum + (Double(figure).map { Int($0) } ?? 0)
        }
    }

    /// A member writes a line, and now and then reads the chat before or takes the message back; others read it.
    private func say(_ chat: Int, _ line: Int, _ random: inout SeededRandom) async throws {
        let (place, said) = (plan.chats[chat], plan.chats[chat].lines[line])
        let sender = users[place.members[said.sender]]
        if Int.random(in: 0..<4, using: &random) == 0 { try await read(chat, said.sender) }
        let key = "m\(line)"
        var values: JSONObject = [:]
        values["messages/\(key)"] = [
            "date": [".sv": "timestamp"], "senderId": .string(sender.session.uid),
            "text": .string(said.text),
        ]
        for (index, member) in place.members.enumerated() where index != said.sender {
            values["unread/\(users[member].session.uid)"] = [".sv": ["increment": 1]]
        }
        let path = try TreePath("/chats/\(place.id)")
        _ = try await sender.client.call(Messages.Update(path: path, values: values))
        let text = DayUnread.text("\(sender.name)さんからのメッセージ", said.text)
        model.withLock { model in
            for index in place.members.indices where index != said.sender {
                model[chat][index].count += 1
                model[chat][index].messages[key] = text
            }
        }
        for index in place.members.indices where index != said.sender {
            if Int.random(in: 0..<30, using: &random) == 0 { try await read(chat, index) }
        }
        guard Int.random(in: 0..<50, using: &random) == 0 else { return }
        let message = try TreePath("/chats/\(place.id)/messages/\(key)")
        _ = try await sender.client.call(Messages.Set(path: message, value: .null))
        // By the rules the number stays until the reader reads.
        model.withLock { model in
            for index in place.members.indices { model[chat][index].messages[key] = nil }
        }
    }

    private func read(_ chat: Int, _ member: Int) async throws {
        let place = plan.chats[chat]
        let user = users[place.members[member]]
        let path = try TreePath("/chats/\(place.id)/unread/\(user.session.uid)")
        _ = try await user.client.call(Messages.Set(path: path, value: 0))
        model.withLock { $0[chat][member] = DayUnread() }
    }

    // MARK: The end

    /// The phones that differ from the model, each with how.
    private func differences(_ phones: DayPhones) -> [String] {
        let model = model.withLock { $0 }
        var expected = users.map { _ in (list: [String: String](), badge: 0) }
        for (chat, unread) in zip(plan.chats, model) {
            for (member, unread) in zip(chat.members, unread) {
                expected[member].badge += unread.count
                for (key, text) in unread.messages { expected[member].list["\(chat.id)/\(key)"] = text }
            }
        }
        var differences: [String] = []
        for (user, expected) in zip(users, expected) {
            for name in user.phones + user.webhooks {
                let phone = phones[name]
                let list = phone.list
                if list != expected.list {
                    let missing = expected.list.filter { list[$0.key] != $0.value }.sorted { $0.key < $1.key }
                    let extra = list.filter { expected.list[$0.key] != $0.value }.sorted { $0.key < $1.key }
                    differences.append(
                        "phone \(name) misses \(missing.prefix(3)) and shows \(extra.prefix(3))")
                }
                if user.phones.contains(name), phone.badge != expected.badge {
                    differences.append("phone \(name) has the badge \(phone.badge), not \(expected.badge)")
                }
            }
        }
        return differences
    }

    func check(_ phones: DayPhones) async throws {
        let begin = ContinuousClock.now
        let unread = Messages.Get(path: try TreePath("/chats/c0/unread"))
        let last = try await stack.call(unread, of: .messages, as: .administrator).version
        let client = stack.client(.notifier, as: .administrator)
        try await eventually("the notifier is at the end of the day") {
            let cursors = try await client.call(Notifier.Stats()).cursors
            return cursors.contains { UInt64(clamping: $0.version) >= last }
        }
        // What came last may still be about to be accepted.
        try? await eventually("every phone is as the model", within: .seconds(60)) {
            try await waiting(client) == 0 && self.differences(phones).isEmpty
        }
        let differences = self.differences(phones)
        for difference in differences.prefix(20) { Issue.record("\(difference)") }
        #expect(differences.isEmpty)
        let stats = try await client.call(Notifier.Stats())
        #expect(stats.pending == 0 && stats.dead == 0)
        // Without anything to show, nothing is proven.
        let all = phones.all.values
        #expect(all.contains { !$0.shown.isEmpty } && all.contains { $0.badge > 0 })
        print(
            "settled in \(ContinuousClock.now - begin): \(stats.delivered) delivered, \(stats.dropped) dropped, "
                + "\(phones.count) pushes at \(all.count) phones, \(all.reduce(0) { $0 + $1.repetitions }) repeated, "
                + "\(all.reduce(0) { $0 + $1.withdrawals }) silent; "
                + "\(all.reduce(0) { $0 + $1.shown.count }) shown at the end; \(differences.count) differences"
        )
        await client.close()
        for user in users { await user.client.close() }
    }
}
