import Foundation
import HatoModel
import HatoTesting
import Testing

/// No request ends a service, hangs, or gets an internal error. Each method of each built service is called with each
/// of its members set to unexpected values, then with pairs of them, as administrator, as user and without a
/// credential.
///
/// `HATO_HOSTILE_CALLS=n` makes n calls to each service; the seed selects them, and each run prints it.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct HostileCalls {
    private static let callsDefault = 3_000

    private static var calls: Int {
        Int(ProcessInfo.processInfo.environment["HATO_HOSTILE_CALLS"] ?? "") ?? callsDefault
    }

    @Test(arguments: ["auth", "messages", "notifier"])
    func everyCallGetsAResponseAndTheServiceGoesOn(_ service: String) async throws {
        let folder = try TemporaryFolder()
        let stack = try await HostileStack(service, in: folder)
        let (address, auth, count) = (stack.address, stack.auth, Self.calls)
        let seed = SeededRandom.seed()
        let report = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(returning: HostileRun.report(address, auth: auth, calls: count, seed: seed))
            }
        }
        print("\(service): \(report.count) calls, answers by code: \(report.codes.sorted { $0.key < $1.key })")
        for call in report.slowest { print(String(format: "%8.1f ms  ", call.seconds * 1_000) + call.call) }
        for problem in report.problems.prefix(100) { Issue.record("\(service): \(problem)") }
        #expect(report.count >= count)
        #expect(stack.isRunning, "the process runs: \(stack.log.suffix(2_000))")
        await stack.stop()
    }
}

/// A service and the services it needs, each a process of its own.
private final class HostileStack: Sendable {
    private let programs: [ServingProgram]

    init(_ service: String, in folder: TemporaryFolder) async throws {
        func arguments(_ name: String) -> [String] {
            [
                "--data", "\(folder.path)/\(name)", "--backup-dir", "\(folder.path)/\(name)-backups", "--log-level",
                "error",
            ]
        }
        var programs = [
            try await ServingProgram(
                "hato-auth", arguments("auth") + ["--scrypt-log-n", "1", "--scrypt-p", "1"], in: folder)
        ]
        if service != "auth" {
            programs.append(
                try await ServingProgram(
                    "hato-messages",
                    arguments("messages") + ["--auth", programs[0].address, "--first-rules", "signed-in"],
                    in: folder))
        }
        if service == "notifier" {
            programs.append(
                try await ServingProgram(
                    "hato-notifier",
                    arguments("notifier") + ["--auth", programs[0].address, "--messages", programs[1].address],
                    in: folder))
        }
        self.programs = programs
    }

    var auth: String { programs.first?.address ?? "" }
    var address: String { programs.last?.address ?? "" }
    var isRunning: Bool { programs.allSatisfy(\.isRunning) }
    var log: String { programs.last?.log ?? "" }

    func stop() async { for program in programs.reversed() { await program.stop() } }
}

/// The calls of one run: all numbers at members that are declared as numbers in all three roles, and long texts at a
/// few members as administrator. A quarter of the rest each: numbers at other members and other single changes as
/// administrator, single changes without a credential and as a user, pairs in all three roles. Where not all fit, they
/// are chosen at random.
private enum HostileRun {
    struct Report: Sendable {
        var count = 0
        var codes: [Int: Int] = [:]
        var problems: [String] = []
        var slowest: [HostileDriver.Timed] = []
    }

    private struct Single {
        var method: HostileMethod
        var sample: Int
        var site: HostileSite
        var value: HostileValue

        var isNumber: Bool { value.isNumber }
    }

    static func report(_ address: String, auth: String, calls: Int, seed: UInt64) -> Report {
        var random = SeededRandom(seed: seed)
        let drivers = HostileDriver.Role.allCases.map { HostileDriver($0, address: address, auth: auth) }
        var problems: [String] = []
        do {
            let document = try drivers[0].result("rpc.discover")
            let methods = (document["methods"]?.array ?? []).compactMap { HostileMethod($0, of: document) }
            if methods.count < 20 { problems.append("only \(methods.count) methods are described") }
            try run(methods, drivers, calls, &random)
            for driver in drivers {
                driver.disconnect()
                let health = try driver.result("service.health")
                if health["status"] == nil { problems.append("no health: \(health)") }
            }
        } catch {
            problems.append("stopped: \(error)")
        }
        var report = Report(problems: problems)
        for driver in drivers {
            report.count += driver.count
            report.codes.merge(driver.codes) { $0 + $1 }
            report.problems += driver.problems
            report.slowest = HostileDriver.slowest(report.slowest + driver.slowest)
        }
        return report
    }

    private static func run(
        _ methods: [HostileMethod], _ drivers: [HostileDriver], _ calls: Int, _ random: inout SeededRandom
    ) throws {
        var rest = calls
        var last = ""
        func call(_ single: Single, _ driver: HostileDriver, and other: (HostileSite, HostileValue)? = nil) throws {
            if single.method.name != last || rest % 200 == 0 { try prepare(drivers, for: single.method.name) }
            (last, rest) = (single.method.name, rest - 1)
            let changes = [(single.site, single.value)] + (other.map { [$0] } ?? [])
            try driver.call(single.method.name, single.method.samples[single.sample], changes)
        }
        let singles = methods.flatMap(singles)
        let numbers = singles.filter { $0.isNumber && $0.site.kind == .number }
        for single in methods.flatMap(long) { try call(single, drivers[0]) }
        for driver in drivers {
            for single in numbers where rest > 0 { try call(single, driver) }
        }
        let share = rest / 4
        for (part, driver) in [
            (singles.filter { $0.isNumber && $0.site.kind == .any }, drivers[0]),
            (singles.filter { !$0.isNumber }, drivers[0]),
        ] {
            for single in some(of: part, share, &random) { try call(single, driver) }
        }
        for driver in drivers.dropFirst() {
            for single in some(of: singles, share / 2, &random) { try call(single, driver) }
        }
        let pairable = methods.filter { $0.samples.contains { $0.sites.count > 1 } }
        while rest > 0, let method = pairable.randomElement(using: &random) {
            let indices = method.samples.indices.filter { method.samples[$0].sites.count > 1 }
            guard let index = indices.randomElement(using: &random) else { continue }
            for round in 0..<min(rest, 21) {
                let sites = method.samples[index].sites.shuffled(using: &random).prefix(2)
                guard let one = sites.first, let other = sites.last,
                    let value = one.values.randomElement(using: &random),
                    let second = other.values.randomElement(using: &random)
                else { continue }
                let driver = drivers[round % drivers.count]
                try call(Single(method: method, sample: index, site: one, value: value), driver, and: (other, second))
            }
        }
    }

    /// About `count` of them, in their order.
    private static func some(of singles: [Single], _ count: Int, _ random: inout SeededRandom) -> [Single] {
        singles.filter { _ in Int.random(in: 0..<singles.count, using: &random) < count }
    }

    private static func long(of method: HostileMethod) -> [Single] {
        guard let site = method.longSite else { return [] }
        return HostileValue.longTexts.map { Single(method: method, sample: 0, site: site, value: $0) }
    }

    private static func singles(of method: HostileMethod) -> [Single] {
        method.samples.indices.flatMap { index in
            method.samples[index].sites.flatMap { site in
                site.values.map { Single(method: method, sample: index, site: site, value: $0) }
            }
        }
    }

    /// Makes new connections, and creates again what an earlier call dropped or closed.
    private static func prepare(_ drivers: [HostileDriver], for method: String) throws {
        for driver in drivers { driver.disconnect() }
        guard method.hasPrefix("messages.") else { return }
        try drivers[0].prepare("messages.databases.create", ["database": "default"])
        try drivers[0].prepare("messages.rules.set", ["rules": .string(rules)])
        try drivers[0].prepare("messages.set", ["path": "/chats", "value": .object(chats)])
    }

    private static let rules = #"{"rules": {".read": "auth != null", ".write": "auth != null"}}"#

    private static let chats: JSONObject = [
        "c1": [
            "title": "磯野家", "x": 1, "members": ["masuo": true],
            "messages": ["-P6iK_s-------------": ["x": "a", "date": 5]],
        ],
        "c2": ["x": "two"], "c3": ["x": nil, "y": 1], "c4": 7,
    ]
}
