// Measures a throw-away stack through the public client, with the machine's floors and Redis beside it, in one table.
import Foundation
import HatoTesting

@main
struct Bench {
    /// What can be measured, in the order of the table.
    enum Part: String, CaseIterable {
        case floors, wire, redis, posts, reads, fanout, memory
    }

    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard let settings = BenchSettings(arguments) else {
            print(
                "hato-bench [--only \(Part.allCases.map(\.rawValue).joined(separator: ","))] [--seconds N] [--windows N]"
            )
            exit(64)
        }
        do {
            try await Bench(settings: settings).run()
        } catch {
            print("failed: \(error)")
            exit(70)
        }
    }

    let settings: BenchSettings

    func run() async throws {
        var table = Table()
        if settings.has(.floors) { try await Floors(settings: settings).measure(&table) }
        if settings.has(.wire) { try await WireBench(settings: settings).measure(&table) }
        var redis: [String: Double] = [:]
        if settings.has(.redis) { redis = try await RedisBench(settings: settings).measure(&table) }
        if settings.needsStack {
            let settings = settings
            let compared = redis
            let rows = try await TestStack.run { stack in
                var rows = Table()
                if settings.has(.posts) {
                    try await PostBench(settings: settings, stack: stack, redis: compared).measure(&rows)
                }
                if settings.has(.reads) { try await ReadBench(settings: settings, stack: stack).measure(&rows) }
                if settings.has(.fanout) { try await FanOutBench(settings: settings, stack: stack).measure(&rows) }
                if settings.has(.memory) { try await MemoryBench(stack: stack).measure(&rows) }
                return rows
            }
            table.rows += rows.rows
        }
        print(table.text)
    }
}

struct BenchSettings: Sendable {
    var parts = Set(Bench.Part.allCases)
    /// The length of one window.
    var seconds = 3.0
    /// Each figure is the median of so many windows.
    var windows = 3

    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let name = rest.popFirst() {
            guard let value = rest.popFirst() else { return nil }
            switch name {
            case "--only":
                let named = value.split(separator: ",").map { Bench.Part(rawValue: String($0)) }
                parts = Set(named.compactMap { $0 })
                if parts.count != named.count { return nil }
            case "--seconds":
                guard let seconds = Double(value), seconds > 0 else { return nil }
                self.seconds = seconds
            case "--windows":
                guard let windows = Int(value), windows > 0 else { return nil }
                self.windows = windows
            default: return nil
            }
        }
    }

    func has(_ part: Bench.Part) -> Bool { parts.contains(part) }

    var needsStack: Bool { !parts.isDisjoint(with: [.posts, .reads, .fanout, .memory]) }
}

struct BenchError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}
