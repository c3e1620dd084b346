public import ArgumentParser
public import HatoModel
public import HatoRPC

/// A subcommand that is one call: it declares flags, makes a request, and prints the result.
public protocol RequestCommand: AsyncParsableCommand {
    associatedtype Target: CommandTarget
    associatedtype Request: RPCRequest

    var options: ClientOptions { get }
    func request() throws -> Request
    /// The confirmation question on a terminal before the call; nil asks nothing.
    var question: String? { get }
    /// The table for a terminal instead of JSON; nil shows JSON there too. Below the table of a page with an `after`,
    /// standard error has the option for the next page.
    func table(_ result: JSONValue) -> CommandTable?
    /// The failure when the server refuses the call; by default the server's message.
    func failure(_ error: RPCError) -> CommandFailure
}

extension RequestCommand {
    public var question: String? { nil }

    public func table(_ result: JSONValue) -> CommandTable? { nil }

    public func failure(_ error: RPCError) -> CommandFailure { CommandFailure(error) }

    public func run() async throws {
        try await CommandSession.run(options, Target.self, takesOnly: true) { client, output in
            // The result is shown as the server returned it, including members unknown to this version.
            let request = try request()
            try RequestedMember.check(options.only, of: Request.self)
            if let question { try TerminalQuestion.ask(question, output) }
            let params = request.members
            let result: JSONValue
            do { result = try await client.call(method: Request.method, params: params) } catch let error as RPCError {
                throw failure(error)
            }
            if let member = options.only { return try output.show(member: member, of: result) }
            let table = output.isForPeople ? table(result) : nil
            try output.show(result, as: table)
            if table != nil, let after = result["after"]?.string {
                output.complain(Self.hint(after))
            }
        }
    }
}

extension RequestCommand {
    /// How to go on behind a name, as a line that can be pasted: users choose names, so nothing in one may be read as
    /// anything else by a shell.
    private static func hint(_ after: String) -> String {
        guard CommandTable.shown(after) == after else { return "There is more: see --json for where to go on" }
        return "There is more: --after='\(after.replacing("'", with: "'\\''"))'"
    }
}

/// A subcommand that opens a listener and prints a line per event: `{"method","params"}` unless `line` says otherwise.
public protocol StreamCommand: AsyncParsableCommand {
    associatedtype Target: CommandTarget
    associatedtype Request: RPCRequest

    var options: ClientOptions { get }
    var stream: StreamOptions { get }
    func request() throws -> Request
    /// The value printed for an event; nil prints nothing.
    func line(_ event: RPCEvent) -> JSONValue?
}

extension StreamCommand {
    public func line(_ event: RPCEvent) -> JSONValue? {
        .object(["method": .string(event.method), "params": .object(event.params)])
    }

    public func run() async throws {
        try await CommandSession.run(options, Target.self) { client, output in
            let subscription = try await client.subscribe(try request())
            try await output.show(subscription, stream) { line($0) }
        }
    }
}

/// The options of commands that print events.
public struct StreamOptions: ParsableArguments, Sendable {
    @Option(help: ArgumentHelp("End after this many events.", valueName: "count"))
    public var maxEvents: Int?

    public init() {}

    public func validate() throws {
        if let maxEvents, maxEvents < 1 { throw ValidationError("--max-events is at least 1.") }
    }
}

extension CommandOutput {
    /// Prints events until the subscription or `maxEvents` ends; a cancelled subscription is a failure after its last
    /// line.
    func show(
        _ subscription: RPCSubscription, _ options: StreamOptions, line: (RPCEvent) -> JSONValue?
    ) async throws {
        var count = 0
        for try await event in subscription {
            if let line = line(event) { try showLine(line) }
            if event.method.hasSuffix(".cancelled") {
                let reason = event.params["reason"]?.string ?? "unknown"
                throw CommandFailure(.notAllowed, "the server ended the listener: \(reason)")
            }
            count += 1
            if count == options.maxEvents { return }
        }
    }
}
