// Measures temporary stacks, the machine's own limits and Redis, in one table.
import Foundation
import HatoTesting

@main
struct Bench {
    /// The parts, in the order of the table.
    enum Part: String, CaseIterable {
        case floors, wire, posts, rules, reads, fanout, memory, listeners, beside, unread, auth, gateway
        case largeRoom = "large-room"
        case moving, push
        case pushMemory = "push-memory"

        /// The others are measured only when they are named: they take many minutes and gigabytes.
        var isUsual: Bool { self != .largeRoom && self != .moving && self != .pushMemory }
    }

    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.first == "sink" { return await runSink(Array(arguments.dropFirst())) }
        guard let settings = BenchSettings(arguments) else {
            Progress.say(BenchSettings.usage)
            exit(64)
        }
        do {
            try OpenFiles.raiseLimit()
            let table = try await Bench(settings: settings).table()
            print(table.text)
            if let path = settings.jsonPath { try table.writeJSON(to: path) }
        } catch {
            Progress.say("failed: \(error)")
            exit(70)
        }
    }

    /// The receiver of the pushes of another process of this program.
    private static func runSink(_ arguments: [String]) async {
        do {
            try OpenFiles.raiseLimit()
            try await SinkProgram.run(arguments)
        } catch {
            Progress.say("the sink failed: \(error)")
            exit(70)
        }
    }

    let settings: BenchSettings

    private func table() async throws -> Table {
        var table = Table()
        for part in Part.allCases where settings.parts.contains(part) {
            switch part {
            case .floors: try await Floors(settings: settings).measure(&table)
            case .wire:
                try await FieldBench(settings: settings).measure(&table)
                try await WireBench(settings: settings).measure(&table)
            case .posts: try await onStack(&table) { try await PostBench(settings: settings, stack: $0).rows() }
            case .reads: try await onStack(&table) { try await ReadBench(settings: settings, stack: $0).rows() }
            case .fanout: try await onStack(&table) { try await FanOutBench(settings: settings, stack: $0).rows() }
            case .memory: try await onStack(&table) { try await MemoryBench(stack: $0).rows() }
            case .listeners: try await onStack(&table) { try await ListenerBench(stack: $0).rows() }
            case .rules:
                try await onTwoStacks(&table) { try await RulesBench(settings: settings, ruled: $0, open: $1).rows() }
            case .beside:
                try await onTwoStacks(&table) { try await BesideBench(settings: settings, ruled: $0, stack: $1).rows() }
                try await onStack(&table) { try await FollowerBench(settings: settings, stack: $0).rows() }
            case .unread:
                let memory = ["--memory-bytes", "\(UnreadBench.memoryBytes)"]
                table.rows += try await TestStack.run(memory) {
                    try await UnreadBench(settings: settings, stack: $0).rows()
                }.rows
            case .auth: try await AuthBench(settings: settings).measure(&table)
            case .gateway: try await GatewayBench(settings: settings).measure(&table)
            case .largeRoom: try await onTwoChatStacks(&table)
            case .push: try await PushBench(settings: settings).measure(&table)
            case .pushMemory: try await WaitingBench(settings: settings).measure(&table)
            case .moving: try await onStack(&table) { try await MovingBench(settings: settings, stack: $0).rows() }
            }
        }
        return table
    }

    /// Each part has a stack of its own: its rows do not depend on the parts before it.
    private func onStack(_ table: inout Table, _ body: (TestStack) async throws -> Table) async throws {
        table.rows += try await TestStack.run([], body).rows
    }

    /// One with the rules of a chat, one with its initial rules.
    private func onTwoStacks(_ table: inout Table, _ body: (TestStack, TestStack) async throws -> Table) async throws {
        table.rows += try await TestStack.run(["--rules", "chat"]) { ruled in
            try await TestStack.run([]) { try await body(ruled, $0) }
        }.rows
    }

    private func onTwoChatStacks(_ table: inout Table) async throws {
        let settings = settings
        table.rows += try await TestStack.run(["--rules", "chat"]) { full in
            try await TestStack.run(["--rules", "chat"]) { empty in
                try await LargeRoomBench(settings: settings, full: full, empty: empty).rows()
            }
        }.rows
    }
}

struct BenchError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}
