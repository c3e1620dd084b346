import HatoModel
import HatoPush
import HatoStorage
import HatoTesting
import Logging
import Synchronization
import Testing

@testable import HatoNotifier

@Suite(.timeLimit(.minutes(10))) struct DispatcherTests {
    private let clock = TestClock()
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func running(
        _ outbox: Outbox, _ channel: ScriptedChannel, _ body: () async throws -> Void
    ) async throws {
        let dispatcher = Dispatcher(outbox, channels: [channel], ResultWriter(outbox), logger: logger)
        let task = Task { await dispatcher.run() }
        do { try await body() } catch {
            task.cancel()
            await dispatcher.stop()
            throw error
        }
        await dispatcher.stop()
        await task.value
    }

    @Test func whatIsAcceptedIsDeliveredAndRetriedWhenItsTimeComes() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        let channel = ScriptedChannel(script: [ScriptedChannel.busy, ScriptedChannel.busy])
        try await running(outbox, channel) {
            let id = try await outbox.send("a")
            try await eventually("the first attempt failed") {
                try await outbox.status(of: id)?.deliveries.first?.lastAttempt != nil
            }
            for _ in 1...2 {
                // Not until the end of the lease, which is the alarm while the attempt is under way.
                try await eventually("the dispatcher sleeps until the retry") {
                    let counts = try await outbox.counts()
                    return counts.leased == 0 && clock.nextAlarm != nil && clock.nextAlarm == counts.nextDueAt
                }
                let alarm = try #require(clock.nextAlarm)
                let count = channel.deliveries.count
                clock.advance(by: .milliseconds(alarm - clock.now))
                try await eventually("another attempt") { channel.deliveries.count > count || outbox.pending == 0 }
            }
            try await eventually("delivered") { try await outbox.states(of: id) == [.delivered] }
            #expect(Set(channel.deliveries.map(\.id)) == ["\(id)-0"] && channel.deliveries.count == 3)
        }
    }

    @Test func differentDevicesAreServedInParallelOneIsNot() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        for name in ["d1", "d2", "d3"] { try await outbox.addDevice(name, of: name) }
        let gate = Gate()
        let channel = ScriptedChannel(gate: gate)
        try await running(outbox, channel) {
            for title in ["a", "b"] { try await outbox.send(title, to: ["d1", "d2", "d3"]) }
            try await eventually("one attempt at each device") { channel.deliveries.count == 3 }
            gate.open()
            try await eventually("all delivered") { outbox.pending == 0 }
            #expect(channel.inFlightMax("d1") == 1 && channel.deliveries.count == 6)
        }
    }

    @Test func attemptsInFlightAreBounded() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock) { $0.delivery.attemptsInFlightMax = 2 }
        for index in 0..<5 { try await outbox.addDevice("d\(index)", of: "u1") }
        let gate = Gate()
        let channel = ScriptedChannel(gate: gate)
        try await running(outbox, channel) {
            try await outbox.send("a")
            try await eventually("two attempts") { channel.deliveries.count == 2 }
            #expect(try await outbox.counts().leased == 2)
            gate.open()
            try await eventually("all delivered") { outbox.pending == 0 }
        }
    }

    @Test func attemptsThatCannotBeRecordedAreLoggedOnceASecond() async throws {
        let lines = KeptLines()
        let store = try MemoryStore()
        let outbox = try await Outbox.test(store, clock)
        for index in 0..<20 { try await outbox.addDevice("d\(index)", of: "u\(index)") }
        let gate = Gate()
        let channel = ScriptedChannel(gate: gate)
        let dispatcher = Dispatcher(
            outbox, channels: [channel], ResultWriter(outbox),
            logger: Logger(label: "test") { _ in KeptLog(lines: lines) })
        let task = Task { await dispatcher.run() }
        try await outbox.accept(outbox.notification("a", to: (0..<20).map { "u\($0)" }))
        try await eventually("all are attempted") { channel.deliveries.count == 20 }
        let start = ContinuousClock.now
        store.close()
        gate.open()
        try await eventually("attempts have ended") { lines.texts.contains { $0.contains("cannot be recorded") } }
        await dispatcher.stop()
        await task.value
        let seconds = (ContinuousClock.now - start).components.seconds
        for text in ["the result of an attempt cannot be recorded", "deliveries cannot be leased"] {
            #expect(lines.texts.count { $0 == text } <= seconds + 1, "\(text)")
        }
    }

    @Test func stoppingFinishesWhatIsInFlight() async throws {
        let outbox = try await Outbox.test(MemoryStore(), clock)
        try await outbox.addDevice("d1", of: "u1")
        let gate = Gate()
        let channel = ScriptedChannel(gate: gate)
        let dispatcher = Dispatcher(outbox, channels: [channel], ResultWriter(outbox), logger: logger)
        let task = Task { await dispatcher.run() }
        let id = try await outbox.send("a")
        try await outbox.send("b")
        try await eventually("an attempt") { channel.deliveries.count == 1 }
        await dispatcher.stop()
        gate.open()
        await task.value
        #expect(try await outbox.states(of: id) == [.delivered])
        #expect(channel.titles == ["a"])
    }
}

private final class KeptLines: Sendable {
    private let lines = Mutex<[String]>([])

    var texts: [String] { lines.withLock { $0 } }
    func keep(_ text: String) { lines.withLock { $0.append(text) } }
}

private struct KeptLog: LogHandler {
    let lines: KeptLines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.keep("\(event.message)") }
}
