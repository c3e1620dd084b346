import HatoFollow
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import TestAuth
import Testing

@testable import HatoNotifier

/// What users report of notifications.
@Suite(.timeLimit(.minutes(10))) struct ResponseTests {
    @Test func aPushCarriesAReplyTokenOfItsUserAndDevice() async throws {
        let world = try await RespondingWorld.start()
        let pushes = try await world.send("MARRY_ME")
        #expect(pushes.map(\.uid) == ["u1", "u1", "u2"] && Set(pushes.map(\.token)).count == 3)
        let key = try await ReplyKey.of(world.store)
        for push in pushes {
            let capability = try #require(key.capability(push.token))
            #expect(capability.notification == push.notification)
            #expect([capability.uid, capability.device] == [push.uid, push.device])
            let hours = (capability.expiresAt - WallClock.milliseconds()) / 3_600_000
            #expect((24...48).contains(hours))
            #expect(
                world.channel.deliveries.contains {
                    $0.content.device == push.device && $0.content.hato.id == push.notification
                })
        }
        await world.stop()
    }

    @Test func aTokenWithoutAUserGetsNoReplyToken() async throws {
        let (clock, store) = (TestClock(), try MemoryStore())
        let outbox = try await Outbox.test(store, clock) { $0.replyKey = ReplyKey([1]) }
        try await outbox.addPhone("p1", of: "")
        try await outbox.addPhone("p2", of: "u1")
        var new = outbox.notification("a")
        new.recipients = .devices(["p1", "p2"])
        _ = try await outbox.accept(new)
        let queue = try #require(try await outbox.device("p1")?.queue)
        let round = try await ProviderQueues(outbox).lease(from: queue, limit: 10)
        let contents = round.leases.map(\.delivery.content).sorted { $0.device < $1.device }
        #expect(contents.map(\.device) == ["p1", "p2"] && contents.map { $0.hato.reply == nil } == [true, false])
    }

    @Test func theFirstActionOfAUserCountsOnAllDevices() async throws {
        let world = try await RespondingWorld.start()
        let pushes = try await world.send("MARRY_ME")
        #expect(try await world.respond(to: pushes[0], "ACCEPT") == .init(effect: .none))
        #expect(try await world.respond(to: pushes[0], "ACCEPT") == .init(effect: .none))
        #expect(try await world.respond(to: pushes[1], "ACCEPT") == .init(effect: .none))
        do {
            try await world.respond(to: pushes[1], "REFUSE")
            Issue.record("a second action was taken")
        } catch let error as RPCError {
            #expect(error.code == .failedPrecondition && error.reason == "already_responded")
            #expect(error.data["action"] == "ACCEPT")
        }
        // Another user chooses anew.
        #expect(try await world.respond(to: pushes[2], "LETTER", text: "はい") == .init(effect: .none))
        #expect(await world.refusal(of: pushes[2], "LETTER", text: "いいえ") == "already_responded")
        let events = try world.events()
        #expect(events.map(\.type) == [.action, .action] && events.map(\.action) == ["ACCEPT", "LETTER"])
        #expect(events.map(\.uid) == ["u1", "u2"] && events.map(\.text) == [nil, "はい"])
        #expect(events.map(\.device) == [pushes[0].device, pushes[2].device])
        #expect(events.map(\.notification) == [pushes[0].notification, pushes[0].notification])
        await world.stop()
    }

    @Test func reportsCountOnceForEachDevice() async throws {
        let world = try await RespondingWorld.start()
        let pushes = try await world.send(nil)
        for _ in 0..<2 {
            for report in ["displayed", "opened", "dismissed"] {
                for push in pushes { #expect(try await world.respond(to: push, report) == .init(effect: .none)) }
            }
        }
        let events = try world.events()
        #expect(events.count == 9)
        #expect(Set(events.map { "\($0.type) \($0.device ?? "")" }).count == 9)
        #expect(await world.refusal(of: pushes[0], "opened", text: "a") == "text_not_allowed")
        await world.stop()
    }

    @Test func wrongTokensAreRefusedByName() async throws {
        let world = try await RespondingWorld.start()
        let pushes = try await world.send("MARRY_ME")
        let others = try await world.send("MARRY_ME")
        let key = try await ReplyKey.of(world.store)
        func token(of push: RespondingWorld.Push, _ change: (inout ReplyCapability) -> Void) throws -> String {
            var capability = try #require(key.capability(push.token))
            change(&capability)
            return key.token(capability)
        }
        let bytes = try #require(Base64.url.decode(pushes[0].token.utf8))
        for index in bytes.indices {
            var forged = bytes
            forged[index] ^= 1
            let text = Base64.url.encode(forged)
            #expect(key.capability(text) == nil, "byte \(index)")
        }
        var forged = bytes
        forged[bytes.count - 1] ^= 1
        #expect(await world.refusal(of: pushes[0], "ACCEPT", token: Base64.url.encode(forged)) == "invalid_reply_token")
        for wrong in ["", "x", "=", String(repeating: "A", count: 10_000)] {
            #expect(await world.refusal(of: pushes[0], "ACCEPT", token: wrong) == "invalid_reply_token")
        }
        let foreign = ReplyKey([UInt8](repeating: 7, count: 32)).token(try #require(key.capability(pushes[0].token)))
        #expect(await world.refusal(of: pushes[0], "ACCEPT", token: foreign) == "invalid_reply_token")
        #expect(await world.refusal(of: pushes[0], "ACCEPT", token: others[0].token) == "other_notification")
        let expired = try token(of: pushes[0]) { $0.expiresAt = WallClock.milliseconds() - 1 }
        #expect(await world.refusal(of: pushes[0], "ACCEPT", token: expired) == "reply_token_expired")
        // Signed, but the device is another user's, or there is none.
        let another = try token(of: pushes[0]) { $0.device = pushes[2].device }
        #expect(await world.refusal(of: pushes[0], "ACCEPT", token: another) == "reply_token_revoked")
        _ = try await world.notifier.client.call(Notifier.Devices.Unregister(device: pushes[0].device))
        #expect(await world.refusal(of: pushes[0], "ACCEPT") == "reply_token_revoked")
        #expect(await world.refusal(of: pushes[0], "displayed") == "reply_token_revoked")
        let none = try token(of: pushes[1]) { $0.notification = "ntf_0" }
        var push = pushes[1]
        push.notification = "ntf_0"
        #expect(await world.refusal(of: push, "ACCEPT", token: none) == "notification_not_found")
        #expect(try world.events().isEmpty)
        #expect(try await world.respond(to: pushes[1], "ACCEPT") == .init(effect: .none))
        await world.stop()
    }

    @Test func wrongActionsAreRefusedByName() async throws {
        let world = try await RespondingWorld.start { $0.limits.replyTextBytesMax = 16 }
        let push = try await world.send("MARRY_ME")[0]
        let bare = try await world.send(nil)[0]
        #expect(await world.refusal(of: push, "REPLY") == "unknown_action")
        #expect(await world.refusal(of: bare, "ACCEPT") == "unknown_action")
        #expect(await world.refusal(of: bare, quickReply: 0) == "no_text_input")
        #expect(await world.refusal(of: push, "ACCEPT", text: "はい") == "text_not_allowed")
        #expect(await world.refusal(of: push, "LETTER") == "text_required")
        #expect(await world.refusal(of: push, "LETTER", text: "") == "text_required")
        #expect(await world.refusal(of: push, "LETTER", text: String(repeating: "a", count: 17)) == "too_big")
        #expect(await world.refusal(of: push) == "invalid_choice")
        #expect(await world.refusal(of: push, "ACCEPT", quickReply: 1) == "invalid_choice")
        #expect(await world.refusal(of: push, quickReply: 6) == "invalid_quick_reply")
        #expect(await world.refusal(of: push, quickReply: -1) == "invalid_quick_reply")
        #expect(await world.refusal(of: push, quickReply: 1, text: "a") == "text_not_allowed")
        #expect(try world.events().isEmpty)
        await world.stop()
    }

    @Test func anIDTokenRespondsForItsUser() async throws {
        let world = try await RespondingWorld.start()
        let push = try await world.send("MARRY_ME", to: ["u1"])[0]
        func respond(_ id: String, as uid: String) async -> String? {
            do {
                _ = try await world.notifier.call(Notifier.Respond(notification: id, action: "ACCEPT"), as: uid)
                return nil
            } catch { return (error as? RPCError)?.reason }
        }
        #expect(await respond("ntf_0", as: "u1") == "notification_not_found")
        #expect(await respond(push.notification, as: "u2") == "not_recipient")
        #expect(await respond(push.notification, as: "u1") == nil)
        #expect(await world.refusal(of: push, "REFUSE") == "already_responded")
        let events = try world.events()
        #expect(events.map(\.uid) == ["u1"] && events.map(\.device) == [nil])
        let request = Notifier.Respond(notification: push.notification, action: "ACCEPT")
        let app = world.notifier.anonymousClient()
        await #expect(throws: RPCError.self) { try await app.call(request) }
        let administrator = await #expect(throws: RPCError.self) { try await world.notifier.client.call(request) }
        #expect(administrator?.data["parameter"] == "as")
        #expect(await respond("", as: "u1") == "invalid_key")
        await world.stop()
    }

    @Test func whatWasReportedGoesWithItsNotification() async throws {
        let (clock, store) = (TestClock(), try MemoryStore())
        let outbox = try await Outbox.test(store, clock)
        try await outbox.addDevice("d1", of: "u1")
        let id = try await outbox.send("a")
        let limits = outbox.limits
        let responding = Responding(
            notification: id, choice: .report(.opened), text: nil, responder: Responder(uid: "u1", device: "d1"),
            limits: limits)
        #expect(try await outbox.change { try responding.apply(to: &$0) } == .init(effect: .none))
        #expect(try store.snapshot().count(.response) == 1)
        let lease = try #require(try await outbox.lease(limit: 1).leases.first)
        try await outbox.record(.delivered(DeliveryResponse(status: 200)), of: lease)
        clock.advance(by: .seconds(9 * 24 * 3_600))
        _ = try await outbox.purge()
        #expect(try store.snapshot().count(.response) == 0)
    }
}
