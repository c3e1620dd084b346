import Foundation
import HatoTesting

/// How much the fault tests try; with the defaults of `make test` they take some seconds. The full run before a release
/// is `HATO_FAULT_PUSHES=5000 HATO_FAULT_KILLS=20 HATO_FAULT_INCREMENTS=1000 HATO_FAULT_QUERIES=20000
/// HATO_FAULT_SOCKETS=64`. `HATO_FAULT_SEED` repeats a run's moments and values.
enum FaultSettings {
    static let pushes = number("HATO_FAULT_PUSHES") ?? 300
    static let kills = number("HATO_FAULT_KILLS") ?? 1
    /// Of each of eight clients.
    static let increments = number("HATO_FAULT_INCREMENTS") ?? 40
    /// Clients of the gateway.
    static let sockets = max(1, number("HATO_FAULT_SOCKETS") ?? 8)
    /// Of the gateway and of messages, all in one run: 100 before a release.
    static let gatewayKills = max(9, 5 * kills)
    static let queries = number("HATO_FAULT_QUERIES") ?? 400
    static let seed = number("HATO_FAULT_SEED") ?? Int.random(in: 1...1_000_000)
    /// The only place of the kills of pushes and replies: a failpoint, or `random` for those from outside.
    private static let place = ProcessInfo.processInfo.environment["HATO_FAULT_PLACE"]

    /// Where to kill, and at which passing.
    typealias Places = [(name: String?, counts: ClosedRange<Int>)]

    /// Those of these places that are chosen; all unless one is.
    static func chosen(_ places: Places) -> Places {
        places.filter { place == nil || place == $0.name ?? "random" }
    }

    /// How long a test may wait for one event: longer than any machine needs, so only a failing test reaches it.
    static let patience: Duration = .seconds(120)

    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap(Int.init)
    }
}

/// Asks again and again until there is a response.
func waiting<Answer>(
    for thing: @autoclosure () -> String, _ ask: () async throws -> Answer?
) async throws -> Answer {
    var answer: Answer?
    try await eventually(thing(), within: FaultSettings.patience) {
        answer = try await ask()
        return answer != nil
    }
    guard let answer else { throw DeadlineExceeded(thing()) }
    return answer
}
