import ArgumentParser
import Foundation
import HatoModel
import HatoRPC
import Logging
import Synchronization
import Testing

@testable import HatoCommand

private enum Shop {
    struct Paint: RPCRequest {
        static let method = "shop.paint"
        static let summary = "Paints"
        static let access = Access.signedIn
        static let effect = Effect.write
        var name: String
        struct Result: FieldObject {
            var name: String
            var uid: String?
            var after: String?
            static let fields = Fields<Self>(
                blank: Self(name: ""),
                .required("name", \.name),
                .optional("uid", \.uid),
                .optional("after", \.after))
        }
        static let example = RPCExample(Paint(name: "door"), Result(name: "door"))
        static let fields = Fields<Self>(blank: Self(name: ""), .required("name", \.name))
    }

    struct Refuse: RPCRequest {
        typealias Result = Empty
        static let method = "shop.refuse"
        static let summary = "Fails with the code it is given"
        static let access = Access.anyone
        static let effect = Effect.read
        var code: Int
        static let example = RPCExample(Refuse(code: -32003), Empty())
        static let fields = Fields<Self>(blank: Self(code: 0), .required("code", \.code))
    }

    struct Watch: RPCRequest {
        static let method = "shop.watch"
        static let summary = "Sends three events"
        static let access = Access.anyone
        static let effect = Effect.read
        var cancels: Bool?
        struct Result: FieldObject {
            var subscription: String
            static let fields = Fields<Self>(blank: Self(subscription: ""), .required("subscription", \.subscription))
        }
        static let example = RPCExample(Watch(), Result(subscription: "1"))
        static let fields = Fields<Self>(blank: Self(), .optional("cancels", \.cancels))
    }
}

private enum ShopTarget: CommandTarget {
    static let service = "shop"
    static let port = 1
    static let methods: [any RPCRequest.Type] = [Shop.Paint.self, Shop.Refuse.self, Shop.Watch.self]
}

private struct PaintCommand: RequestCommand {
    typealias Target = ShopTarget
    static let configuration = CommandConfiguration(commandName: "paint")
    @OptionGroup var options: ClientOptions
    @Argument var name: String
    func request() throws -> Shop.Paint {
        guard !name.isEmpty else { throw ArgumentError(reason: "EMPTY", "Give a name") }
        return Shop.Paint(name: name)
    }
    func table(_ result: JSONValue) -> CommandTable? { CommandTable(["name"], of: [result]) }
}

private struct RepaintCommand: RequestCommand {
    typealias Target = ShopTarget
    static let configuration = CommandConfiguration(commandName: "repaint")
    @OptionGroup var options: ClientOptions
    @Flag var yes = false
    var question: String? { yes ? nil : "Paint over it?" }
    func request() throws -> Shop.Paint { Shop.Paint(name: "over") }
}

private struct WatchCommand: StreamCommand {
    typealias Target = ShopTarget
    static let configuration = CommandConfiguration(commandName: "watch")
    @OptionGroup var options: ClientOptions
    @OptionGroup var stream: StreamOptions
    func request() throws -> Shop.Watch { Shop.Watch() }
}

/// Tokens are names of users; "key" is the administrator's.
private struct NameAuthenticator: Authenticator {
    func remembered(_ credential: String) -> Caller? { nil }
    func authenticate(_ credential: String) async throws -> Caller {
        switch credential {
        case "key": .administrator
        case "bad": throw RPCError.unauthenticated(reason: "INVALID_ID_TOKEN", "Sign in again")
        default: .user(Caller.User(uid: credential))
        }
    }
}

/// Commands as typed in a terminal, against a server.
@Suite struct CommandRunTests {
    private struct Outcome {
        var out: String
        var err: String
        var code: Int32
        var json: JSONValue? { try? JSONParser.parse(out) }
        var lines: [JSONValue] { out.split(separator: "\n").compactMap { try? JSONParser.parse(String($0)) } }
    }

    /// Counts the calls of `shop.paint`.
    private final class Counter: Sendable {
        private let calls = Mutex(0)
        var count: Int { calls.withLock { $0 } }
        func add() { calls.withLock { $0 += 1 } }
    }

    private func withServer(
        _ calls: Counter = Counter(), health: RPCHealth = RPCHealth(.ready),
        _ body: (_ address: String) async throws -> Void
    ) async throws {
        var router = RPCRouter()
        router.handle(Shop.Paint.self) { request, context in
            calls.add()
            let after = ["page": "it's; ls", "hidden": "a\u{1B}"][request.name]
            return Shop.Paint.Result(name: request.name, uid: context.caller.uid, after: after)
        }
        router.handle(Shop.Refuse.self) { request, _ in
            throw RPCError(RPCError.Code(rawValue: request.code), reason: "because", "The shop says no")
        }
        router.handle(Shop.Watch.self) { request, context in
            let subscription = context.openSubscription()
            for number in 1...3 {
                _ = context.connection.notify(
                    "shop.event", subscription: subscription, members: EncodedJSON("\"number\":\(number)"))
            }
            if request.cancels == true {
                _ = context.connection.notify(
                    "shop.cancelled", subscription: subscription, members: EncodedJSON("\"reason\":\"closed\""))
            }
            return Shop.Watch.Result(subscription: subscription)
        }
        var configuration = RPCServerConfiguration(service: "shop", version: "1")
        configuration.port = 0
        configuration.methods = ShopTarget.methods
        configuration.health = { health }
        let server = RPCServer(
            configuration, router: router, authenticator: NameAuthenticator(), logger: Logger(label: "test"))
        let address = try await server.start()
        do { try await body("\(address.host):\(address.port)") } catch {
            await server.shutdown(grace: .seconds(1))
            throw error
        }
        await server.shutdown(grace: .seconds(1))
    }

    /// Calls wait longer than those of people: the machine may be busy.
    private func run<Command: AsyncParsableCommand>(
        _ type: Command.Type, _ arguments: [String], isForPeople: Bool = false
    ) async throws -> Outcome {
        let isPatient = arguments.contains("--server") && !arguments.contains("--timeout")
        let arguments = arguments + (isPatient ? ["--timeout", "240"] : [])
        let recording = Recording()
        var code: Int32 = 0
        var command = try type.parse(arguments)
        do {
            try await CommandOutput.$substitute.withValue(recording.output(isForPeople: isForPeople)) {
                try await command.run()
            }
        } catch let error as ExitCode { code = error.rawValue }
        return Outcome(out: recording.out, err: recording.err, code: code)
    }

    @Test func anyMethodCanBeCalledWithJSON() async throws {
        try await withServer { address in
            let done = try await run(
                CallCommand<ShopTarget>.self,
                ["shop.paint", #"{"name":"戸"}"#, "--server", address, "--token", "masuo"])
            #expect(done.code == 0)
            #expect(done.json == ["name": "戸", "uid": "masuo"])
            #expect(done.out.hasSuffix("\n") && done.err.isEmpty)
        }
    }

    @Test func handCommandPrintsItsResult() async throws {
        try await withServer { address in
            let arguments = ["door", "--server", address, "--token", "masuo"]
            let script = try await run(PaintCommand.self, arguments)
            #expect(script.json?["name"] == "door")
            let table = try await run(PaintCommand.self, arguments, isForPeople: true)
            #expect(table.out == "NAME\ndoor\n")
            let json = try await run(PaintCommand.self, arguments + ["--json"], isForPeople: true)
            #expect(json.json?["name"] == "door")
        }
    }

    @Test func peopleLearnThatThereIsMore() async throws {
        try await withServer { address in
            let arguments = ["page", "--server", address, "--token", "masuo"]
            let table = try await run(PaintCommand.self, arguments, isForPeople: true)
            #expect(table.out == "NAME\npage\n")
            #expect(table.err == "There is more: --after='it'\\''s; ls'\n")
            let hidden = try await run(
                PaintCommand.self, ["hidden", "--server", address, "--token", "masuo"], isForPeople: true)
            #expect(hidden.err == "There is more: see --json for where to go on\n")
            #expect(try await run(PaintCommand.self, arguments).err.isEmpty)
        }
    }

    @Test func exitCodeFollowsTheServersError() async throws {
        try await withServer { address in
            let expected: [(code: Int, exit: Int32)] = [
                (-32003, 1), (-32008, 1), (-32002, 77), (-32001, 77), (-32007, 69), (-32603, 70),
            ]
            for (code, exit) in expected {
                let done = try await run(
                    CallCommand<ShopTarget>.self, ["shop.refuse", "{\"code\":\(code)}", "--server", address])
                #expect(done.code == exit, "\(code)")
                #expect(done.out.isEmpty)
                #expect(done.err.contains("hato-shop: ") && done.err.contains("\"code\":\(code)"), "\(done.err)")
            }
        }
    }

    @Test func credentialIsCheckedByTheServer() async throws {
        try await withServer { address in
            let nobody = try await run(PaintCommand.self, ["x", "--server", address])
            #expect(nobody.code == 77)
            let bad = try await run(PaintCommand.self, ["x", "--server", address, "--token", "bad"])
            #expect(bad.code == 77)
            #expect(bad.err.contains("INVALID_ID_TOKEN"))
        }
    }

    @Test func administratorImpersonatesAUser() async throws {
        try await withServer { address in
            let file = FileManager.default.temporaryDirectory.appending(path: "hato-\(UUID().uuidString).key")
            try Data("key\n".utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let arguments = ["x", "--server", address, "--admin-key-file", file.path]
            let administrator = try await run(PaintCommand.self, arguments)
            #expect(administrator.json?["uid"] == nil)
            let asUser = try await run(PaintCommand.self, arguments + ["--as", "sazae"])
            #expect(asUser.json?["uid"] == "sazae")
        }
    }

    @Test func unreachableServiceIsUnavailable() async throws {
        let done = try await run(
            CallCommand<ShopTarget>.self, ["service.health", "--server", "127.0.0.1:1", "--timeout", "20"])
        #expect(done.code == 69)
        #expect(!done.err.isEmpty)
    }

    @Test func wrongArgumentsAreReportedBeforeAnyCall() async throws {
        let nobody = ["--server", "127.0.0.1:1"]
        let empty = try await run(PaintCommand.self, [""] + nobody)
        #expect(empty.code == 64)
        let array = try await run(CallCommand<ShopTarget>.self, ["shop.paint", "[1]"] + nobody)
        #expect(array.code == 64)
        let broken = try await run(CallCommand<ShopTarget>.self, ["shop.paint", "{"] + nobody)
        #expect(broken.code == 64)
    }

    @Test func memberThatNoResultHasIsRefusedBeforeTheCall() async throws {
        let calls = Counter()
        try await withServer(calls) { address in
            let arguments = ["door", "--server", address, "--token", "masuo"]
            let known = try await run(PaintCommand.self, arguments + ["--only", "uid"])
            #expect(known.out == "masuo\n")
            let call = ["shop.paint", #"{"name":"door"}"#, "--server", address, "--token", "masuo"]
            #expect(try await run(CallCommand<ShopTarget>.self, call + ["--only", "name"]).out == "door\n")
            #expect(calls.count == 2)
            let unknown = try await run(PaintCommand.self, arguments + ["--only", "colour"])
            #expect(unknown.code == 64)
            #expect(unknown.err.contains("it has: name, uid"))
            #expect(try await run(CallCommand<ShopTarget>.self, call + ["--only", "colour"]).code == 64)
            let stream = try await run(WatchCommand.self, ["--server", address, "--only", "number"])
            #expect(stream.code == 64)
            #expect(calls.count == 2)
        }
    }

    @Test func questionNeedsAYesFromATerminalOrAFlag() async throws {
        let calls = Counter()
        try await withServer(calls) { address in
            let arguments = ["--server", address, "--token", "masuo"]
            func outcome(_ answer: String?, _ flags: [String] = []) async throws -> Outcome {
                let answers: TerminalQuestion.Answers = {
                    guard let answer else { return nil }
                    return { answer }
                }
                return try await TerminalQuestion.$substitute.withValue(answers) {
                    try await run(RepaintCommand.self, arguments + flags)
                }
            }
            let nobody = try await outcome(nil)
            #expect(nobody.code == 64)
            #expect(nobody.err.contains("--yes"))
            for answer in ["", "n", "no"] { #expect(try await outcome(answer).code == 1, "\(answer)") }
            #expect(calls.count == 0)
            let confirmed = try await outcome("Y")
            #expect(confirmed.code == 0)
            #expect(confirmed.err.contains("Paint over it? [y/N]"))
            #expect(try await outcome(nil, ["--yes"]).code == 0)
            #expect(calls.count == 2)
        }
    }

    @Test func streamPrintsALineForEachEvent() async throws {
        try await withServer { address in
            let done = try await run(WatchCommand.self, ["--server", address, "--max-events", "2"])
            #expect(done.code == 0)
            #expect(done.lines.map { $0["params"]?["number"] } == [1, 2])
            #expect(done.lines.first?["method"] == "shop.event")
        }
    }

    @Test func callOfAListenerPrintsItsResultAndThenItsEvents() async throws {
        try await withServer { address in
            let done = try await run(
                CallCommand<ShopTarget>.self, ["shop.watch", "{}", "--server", address, "--max-events", "3"])
            #expect(done.code == 0)
            #expect(done.lines.count == 4)
            #expect(done.lines.first?["subscription"]?.string != nil)
            #expect(done.lines.last?["params"]?["number"] == 3)
        }
    }

    @Test func cancelledListenerEndsTheCommand() async throws {
        try await withServer { address in
            let done = try await run(
                CallCommand<ShopTarget>.self, ["shop.watch", #"{"cancels":true}"#, "--server", address])
            #expect(done.code == 77)
            #expect(done.lines.count == 5)
            #expect(done.err.contains("closed"))
        }
    }

    @Test(arguments: [(Service.Health.Status.ready, Int32(0)), (.degraded, 0), (.starting, 69), (.stopping, 69)])
    func exitCodeOfHealthSaysWhetherTheServiceWorks(status: Service.Health.Status, code: Int32) async throws {
        try await withServer(health: RPCHealth(status)) { address in
            let done = try await run(HealthCommand<ShopTarget>.self, ["--server", address])
            #expect(done.code == code)
            #expect(done.json?["status"]?.string == status.rawValue)
        }
    }

    @Test func healthOfAnUnreachableServiceIsUnavailable() async throws {
        let done = try await run(HealthCommand<ShopTarget>.self, ["--server", "127.0.0.1:1", "--wait", "0.3"])
        #expect(done.code == 69)
    }

    @Test func versionCallsNoService() async throws {
        let done = try await run(VersionCommand<ShopTarget>.self, [])
        #expect(done.json == ["service": "shop", "version": .string(Service.version)])
        let shown = try await run(VersionCommand<ShopTarget>.self, [], isForPeople: true)
        #expect(shown.out == "hato-shop \(Service.version)\n")
    }
}
