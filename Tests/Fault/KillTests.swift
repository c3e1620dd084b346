import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `kill -9` of services during pushes. Each acknowledged push is there once, whole, in the tree, in its index and in
/// the feed. Its webhook is delivered at least once, for no other push, and not again after a quiet restart.
@Suite("Services that are killed", .serialized, .timeLimit(.minutes(30)))
struct KillTests {
    @Test(arguments: [FaultStack.Part.messages, .notifier, .auth])
    func everyAcknowledgedPushIsStoredOnceAndDelivered(victim: FaultStack.Part) async throws {
        try await check(.apart, victim)
    }

    @Test func everyAcknowledgedPushIsStoredOnceWhenAllServicesAreKilled() async throws {
        try await check(.together, .everything)
    }

    private func check(_ layout: FaultStack.Layout, _ victim: FaultStack.Part) async throws {
        let (pushes, kills, seed) = (FaultSettings.pushes, FaultSettings.kills, FaultSettings.seed)
        print("kill test of \(victim): HATO_FAULT_SEED=\(seed) HATO_FAULT_PUSHES=\(pushes) HATO_FAULT_KILLS=\(kills)")
        var random = SeededRandom(seed: UInt64(seed))
        let moments = (0..<kills).map { _ in Int.random(in: 1..<max(2, pushes * 9 / 10), using: &random) }.sorted()
        let receiver = try await WebhookReceiver()
        try await FaultStack.run(layout) { stack in
            let people = try await prepare(stack, receiver)
            let load = PushLoad(stack, numbers: 0..<pushes)
            async let pushing: Void = load.run()
            let signUps = SignUps(stack)
            async let signingUp: Void = signUps.run(until: { load.count == pushes })
            for moment in moments {
                _ = try await waiting(for: "push \(moment)") { load.count >= moment ? true : nil }
                try await stack.killAndRestart(victim)
            }
            try await pushing
            try await signingUp
            let found = try await checkTree(stack, load)
            try await checkFeed(stack, found)
            try await checkDeliveries(stack, receiver, found)
            try await checkCursor(stack, receiver, victim, after: found)
            try await signUps.check()
            _ = people
        }
        await receiver.stop()
    }

    /// A user with a device, and a trigger that notifies that user of every message.
    private func prepare(_ stack: FaultStack, _ receiver: WebhookReceiver) async throws -> String {
        let (auth, messages, notifier) = (stack.client(.auth), stack.client(.messages), stack.client(.notifier))
        _ = try await messages.call(method: "messages.rules.set", params: ["rules": .string(FaultStack.rules)])
        let user = try await auth.call(method: "auth.signUp")
        let (uid, token) = try (#require(user["uid"]?.string), #require(user["idToken"]?.string))
        // Messages and notifier may still be fetching the keys that verify the token.
        _ = try await waiting(for: "the registration of a device") {
            try? await notifier.call(
                method: "notifier.devices.register", params: ["platform": "webhook", "url": .string(receiver.url)],
                credential: token)
        }
        _ = try await notifier.call(
            method: "notifier.triggers.set",
            params: [
                "id": "fault", "pattern": "/chats/{chat}/messages/{message}", "on": ["created"],
                "recipients": ["uids": [.string(uid)]], "notification": ["title": "fault", "body": "{after.text}"],
            ])
        // A trigger starts at the current version, which must be before the first push.
        _ = try await waiting(for: "the notifier to follow the feed") {
            let stats = try await notifier.call(method: "notifier.stats")
            return stats["cursors"]?.array?.first?["following"] == true ? true : nil
        }
        return uid
    }

    /// Every message of the room by its key; their values are right.
    private func checkTree(_ stack: FaultStack, _ load: PushLoad) async throws -> [String: Int] {
        let client = stack.client(.messages)
        let tree = try await client.call(method: "messages.get", params: ["path": .string(PushLoad.room)])
        let members = try #require(tree["value"]?.object).members
        var found: [String: Int] = [:]
        for member in members {
            let (key, value) = (member.name, member.value)
            let number = try #require(value["date"]?.number)
            found[key] = Int(number)
            #expect(value == PushLoad.value(Int(number)), "message \(number) is not whole")
        }
        let answered = load.answered
        for (number, key) in answered.keys { #expect(found[key] == number, "push \(number) has key \(key)") }
        let numbers = found.values.sorted()
        #expect(Set(numbers).count == numbers.count, "a push is there twice")
        #expect(Set(numbers).subtracting(answered.keys.keys).isSubset(of: answered.unanswered))
        #expect(Set(load.numbers).subtracting(answered.unanswered) == Set(answered.keys.keys))
        print("\(found.count) messages; \(answered.unanswered.count) pushes have no response")

        let byDate = try await client.call(
            method: "messages.get", params: ["path": .string(PushLoad.room), "query": ["orderBy": "date"]])
        let order = (byDate["keys"]?.array ?? []).compactMap { $0.string.flatMap { found[$0] } }
        #expect(order == numbers, "the index differs from the tree")
        await client.close()
        return found
    }

    /// The feed has every message once, in order of versions.
    private func checkFeed(_ stack: FaultStack, _ found: [String: Int]) async throws {
        let client = stack.client(.messages)
        let feed = try await client.subscribe(
            method: "messages.follow", params: ["after": 0, "patterns": ["/chats/{chat}/messages/{message}"]])
        var (seen, last): ([String: Int], Double) = ([:], 0)
        for try await event in feed {
            let version = try #require(event.params["version"]?.number)
            #expect(version > last, "versions rise")
            last = version
            for change in event.params["changes"]?.array ?? [] {
                let key = try #require(change["params"]?["message"]?.string)
                #expect(change["type"] == "created")
                #expect(change["after"] == found[key].map(PushLoad.value), "the feed has another value of \(key)")
                seen[key, default: 0] += 1
            }
            if seen.count >= found.count { break }
        }
        #expect(seen.values.allSatisfy { $0 == 1 }, "a commit is in the feed twice")
        #expect(Set(seen.keys) == Set(found.keys))
        feed.cancel()
        await client.close()
    }

    /// Every message of the tree is delivered, no other one is, and no delivery remains.
    private func checkDeliveries(
        _ stack: FaultStack, _ receiver: WebhookReceiver, _ found: [String: Int]
    ) async throws {
        let paths = Set(found.keys.map { "\(PushLoad.room)/\($0)" })
        let missing = { paths.subtracting(receiver.times.keys).count }
        // One device gets one delivery after the other: a slow machine may need long for all, but not for the next.
        while case let count = missing(), count > 0 {
            _ = try await waiting(for: "one of \(count) of \(paths.count) deliveries") {
                missing() < count ? true : nil
            }
        }
        #expect(Set(receiver.times.keys) == paths, "something was delivered that is not there")
        let doubles = receiver.times.values.reduce(0) { $0 + $1 - 1 }
        print("\(paths.count) deliveries and \(doubles) repetitions")
    }

    /// The notifier's position in the feed is the end of the feed; killed while all is quiet, it sends nothing twice.
    private func checkCursor(
        _ stack: FaultStack, _ receiver: WebhookReceiver, _ victim: FaultStack.Part, after found: [String: Int]
    ) async throws {
        let notifier = stack.client(.notifier)
        let quiet: @Sendable () async throws -> Bool? = {
            guard let stats = try? await notifier.call(method: "notifier.stats") else { return nil }
            #expect(stats["dead"] == 0)
            return stats["pending"] == 0 && stats["leased"] == 0 ? true : nil
        }
        _ = try await waiting(for: "an empty outbox", quiet)
        let before = receiver.times
        try await stack.killAndRestart(victim == .everything ? .everything : .notifier)
        let last = PushLoad(stack, numbers: 1_000_000..<1_000_001)
        try await last.run()
        let key = try #require(last.answered.keys[1_000_000])
        let path = "\(PushLoad.room)/\(key)"
        _ = try await waiting(for: "the delivery after a quiet restart") { receiver.times[path] }
        _ = try await waiting(for: "an empty outbox", quiet)
        var expected = before
        expected[path] = receiver.times[path]
        #expect(receiver.times == expected, "a quiet restart delivered old messages again")
        await notifier.close()
    }
}

/// Accounts created while services are killed: those with a response can sign in.
private final class SignUps: Sendable {
    private let stack: FaultStack
    private let sessions = Sessions()

    private actor Sessions {
        var all: [(uid: String, refreshToken: String)] = []
        func add(_ uid: String, _ refreshToken: String) { all.append((uid, refreshToken)) }
    }

    init(_ stack: FaultStack) { self.stack = stack }

    func run(until isOver: @Sendable () -> Bool) async throws {
        let client = stack.client(.auth)
        while !isOver() {
            if let session = try? await client.call(method: "auth.signUp"), let uid = session["uid"]?.string,
                let token = session["refreshToken"]?.string
            {
                await sessions.add(uid, token)
            }
        }
        await client.close()
    }

    func check() async throws {
        let client = stack.client(.auth)
        for (uid, token) in await sessions.all {
            let session = try await client.call(method: "auth.refresh", params: ["refreshToken": .string(token)])
            #expect(session["uid"]?.string == uid)
        }
        await client.close()
    }
}
