import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// Actions that mute the thread of their notification.
@Suite(.timeLimit(.minutes(10))) struct MuteEffectTests {
    private let clock = TestClock()

    private func action(_ id: String, _ duration: Notifier.MuteDuration) -> Notifier.CategoryAction {
        var action = Notifier.CategoryAction(id: id, title: .init(id))
        action.effect = .mute(duration)
        return action
    }

    private func running(mutesMax: Int = 10, _ body: (RespondingWorld) async throws -> Void) async throws {
        let world = try await RespondingWorld.start { [clock] configuration in
            configuration.time = clock.source
            configuration.limits.mutesMax = mutesMax
        }
        do {
            let category = Notifier.Category(
                id: "MUTES", actions: [action("NIGHT", .seconds(28_800)), action("EVER", .forever)])
            _ = try await world.notifier.client.call(Notifier.Categories.Set(category))
            try await body(world)
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    private func mutes(_ world: RespondingWorld, of uid: String = "u1") async throws -> [String: Notifier.MuteEnd] {
        try await world.notifier.client.call(Notifier.Preferences.Get(uid: uid)).mutes ?? [:]
    }

    @Test func theThreadIsMutedForAsLongAsTheActionSays() async throws {
        try await running { world in
            let end = Int(clock.now) + 28_800_000
            let pushes = try await world.send("MUTES")
            #expect(try await world.respond(to: pushes[0], "NIGHT") == .init(effect: .done))
            #expect(try await mutes(world) == ["c1": .at(end)])
            // The same again mutes no longer.
            clock.advance(by: .seconds(60))
            #expect(try await world.respond(to: pushes[1], "NIGHT") == .init(effect: .done))
            #expect(try await mutes(world) == ["c1": .at(end)])
            #expect(try await mutes(world, of: "u2").isEmpty)
            #expect(try world.effectRows() == 0 && world.events().map(\.action) == ["NIGHT"])
            // Both devices of the user are muted, and the one of the other is not.
            var send = Notifier.Send(to: .init(uids: ["u1", "u2"]), notification: .init(body: "あ"))
            send.options = .init()
            send.options?.thread = "c1"
            let id = try #require(try await world.notifier.client.call(send).notification)
            try await eventually("all have ended") {
                let deliveries = try await world.notifier.client.call(Notifier.Status(notification: id)).deliveries
                return deliveries.map { "\($0.uid) \($0.state) \($0.reason ?? "-")" }.sorted()
                    == ["u1 dropped muted", "u1 dropped muted", "u2 delivered -"]
            }
        }
    }

    @Test func aMuteThatLastsLongerStays() async throws {
        try await running { world in
            let (first, second) = (try await world.send("MUTES")[0], try await world.send("MUTES")[0])
            #expect(try await world.respond(to: first, "EVER") == .init(effect: .done))
            #expect(try await world.respond(to: second, "NIGHT") == .init(effect: .done))
            #expect(try await mutes(world) == ["c1": .never])
            let (third, fourth) = (
                try await world.send("MUTES", thread: "c2")[0], try await world.send("MUTES", thread: "c2")[0]
            )
            #expect(try await world.respond(to: third, "NIGHT") == .init(effect: .done))
            #expect(try await world.respond(to: fourth, "EVER") == .init(effect: .done))
            #expect(try await mutes(world) == ["c1": .never, "c2": .never])
        }
    }

    @Test func whatCannotBeMutedIsRefusedByName() async throws {
        try await running(mutesMax: 1) { world in
            let without = try await world.send("MUTES", thread: nil)[0]
            #expect(try await world.respond(to: without, "EVER") == .init(effect: .refused, reason: "no_thread"))
            let (first, second) = (
                try await world.send("MUTES")[0], try await world.send("MUTES", thread: "c2")[0]
            )
            #expect(try await world.respond(to: first, "EVER") == .init(effect: .done))
            #expect(try await world.respond(to: second, "EVER") == .init(effect: .refused, reason: "too_many_mutes"))
            #expect(try await mutes(world) == ["c1": .never])
            #expect(try world.events().compactMap(\.reason) == ["no_thread", "too_many_mutes"])
        }
    }

    @Test func mutesOfUsersOfAuthGoWithThem() async throws {
        try await running { world in
            let push = try await world.send("MUTES")[0]
            try await world.respond(to: push, "EVER")
            let record = try #require(try PreferenceReading(world.store.snapshot()).record(of: "u1"))
            #expect(record.isOfAccount && record.hasMutes)
        }
    }

    @Test func anEffectMutesAndDoesNothingElse() async throws {
        try await running { world in
            func refusal(_ effect: JSONValue) async -> [String?] {
                let action: JSONValue = ["id": "A", "title": "a", "effect": effect]
                do {
                    _ = try await world.notifier.client.call(
                        method: "notifier.categories.set", params: ["id": "X", "actions": [action]])
                    return []
                } catch {
                    let error = error as? RPCError
                    return [error?.reason, error?.data["parameter"]?.string]
                }
            }
            for wrong in [false, 0, -1, 1.5, 31_622_401, "8h", [:]] as [JSONValue] {
                #expect(await refusal(["mute": wrong]) == ["invalid_mute", "actions.0.effect.mute"], "\(wrong)")
            }
            let both: [JSONValue] = [
                ["mute": true, "read": true], ["mute": 1, "set": ["path": "/a", "value": 1]], [:], ["read": false],
            ]
            for effect in both {
                #expect(await refusal(effect) == ["invalid_effect", "actions.0.effect"], "\(effect)")
            }
            #expect(await refusal(["mute": 31_622_400]).isEmpty)
        }
    }
}
