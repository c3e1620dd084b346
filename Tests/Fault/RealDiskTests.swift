import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `hato-messages` under the load of many clients when its disk becomes full or loses its power. The service refuses
/// the writes it cannot keep, logs why, and ends. On the repaired disk it starts with all acknowledged and visible
/// writes (`HistoryCheck`).
@Suite(
    "Messages on disks that fail", .serialized,
    .enabled(if: TestDisk.isPossible, "disks are made by root, of loop devices"),
    .timeLimit(.minutes(60)))
struct RealDiskTests {
    enum Fault: String, CaseIterable {
        case full = "a full disk"
        case powerless = "a disk without power"

        fileprivate var disk: TestDisk.Kind { self == .full ? .memory : .image }

        /// The texts of the log, of which one is there.
        fileprivate var words: [String] {
            switch self {
            case .full: ["No space left on device", "background work of the database"]
            case .powerless: ["Input/output error", "background work of the database"]
            }
        }
    }

    @Test(arguments: Fault.allCases)
    func noAcknowledgedOrVisibleWriteIsLost(fault: Fault) async throws {
        let (seed, rounds) = (UInt64(FaultSettings.seed), FaultSettings.kills)
        print("\(fault.rawValue): HATO_FAULT_SEED=\(seed) HATO_FAULT_KILLS=\(rounds)")
        var random = SeededRandom(seed: seed)
        try await LoneMessages.run { messages in
            try await TestDisk.with(fault.disk, at: messages.data) { disk in
                let history = RecordedHistory()
                let witness = Witness(history)
                // The first commit makes the database: no load runs during it.
                try await messages.start()
                await messages.program.stop()
                for round in 0..<rounds {
                    try await suffer(fault, disk, messages, witness, &random)
                    if fault == .full { try await expectNoStart(messages, disk) }
                    try disk.mend()
                    let (code, result) = try await FailpointKillTests.verify(messages)
                    #expect(code == 0, "round \(round): \(result.encodedText)")
                }
                try await messages.start()
                let summary = try await FailpointKillTests.check(fault.rawValue, messages, history, witness)
                #expect(summary.losses == 0)
                print("\(fault.rawValue), \(rounds) times; \(summary.text)")
            }
        }
    }

    /// Returns when the service is gone.
    private func suffer(
        _ fault: Fault, _ disk: TestDisk, _ messages: LoneMessages, _ witness: Witness, _ random: inout SeededRandom
    ) async throws {
        let logged = messages.log.count
        try await messages.start()
        let watching = try await witness.attend(messages.client())
        let history = witness.history
        var load = RandomLoad(history: history, seed: random.next())
        load.meetsErrors = true
        if fault == .powerless {
            let moment = history.operations.count + Int.random(in: 20...400, using: &random)
            async let cut: Void = cutPower(disk, at: moment, of: history)
            try await load.run { messages.client() }
            try await cut
        } else {
            try disk.leave(kilobytes: Int.random(in: 100...6_000, using: &random))
            try await load.run { messages.client() }
        }
        #expect(await messages.program.exitCode() == 74)
        try await watching.value
        let log = messages.log.dropFirst(logged)
        #expect(log.contains("the store has failed"), "\(log)")
        #expect(fault.words.contains { log.contains($0) }, "\(log)")
    }

    private func cutPower(_ disk: TestDisk, at moment: Int, of history: RecordedHistory) async throws {
        _ = try await waiting(for: "operation \(moment)") { history.operations.count >= moment ? true : nil }
        try disk.cutPower()
    }

    /// Without any space it does not start, and logs why; no data is lost by that.
    private func expectNoStart(_ messages: LoneMessages, _ disk: TestDisk) async throws {
        try disk.leave(kilobytes: 0)
        let ended = try await messages.program.run(messages.arguments)
        #expect(ended.code == 74 && ended.log.contains("No space left on device"), "\(ended.code) \(ended.log)")
    }
}
