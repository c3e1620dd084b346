public import ArgumentParser
import HatoModel
import HatoRPC

/// `call METHOD [JSON | -]`: calls any method, with its params as JSON.
public struct CallCommand<Target: CommandTarget>: AsyncParsableCommand {
    public static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: "call", abstract: "Call any method of the service.",
            discussion: """
                The result is printed as JSON; a method that opens a listener prints its result and then a line per event.
                Example: \(Target.command) call service.health
                """)
    }

    @Argument(help: ArgumentHelp("The method, e.g. service.health.", valueName: "method"))
    var method: String

    @Argument(help: ArgumentHelp("The params, a JSON object; - reads them from stdin.", valueName: "json"))
    var params: String?

    @OptionGroup var options: ClientOptions
    @OptionGroup var stream: StreamOptions

    public init() {}

    public func run() async throws {
        let opensListener = Target.opensListener(method)
        try await CommandSession.run(options, Target.self, takesOnly: !opensListener) { client, output in
            let params = try CallParams.read(params)
            guard opensListener else {
                if let type = Target.methods.first(where: { $0.method == method }) {
                    try RequestedMember.check(options.only, of: type)
                }
                let result = try await client.call(method: method, params: params)
                if let member = options.only { return try output.show(member: member, of: result) }
                return try output.show(result)
            }
            let subscription = try await client.subscribe(method: method, params: params)
            try output.showLine(.object(subscription.result))
            try await output.show(subscription, stream) { event in
                .object(["method": .string(event.method), "params": .object(event.params)])
            }
        }
    }
}

extension CommandTarget {
    /// Whether the method returns a subscription and sends events after it.
    static func opensListener(_ method: String) -> Bool {
        func resultIsSubscription<Request: RPCRequest>(_ type: Request.Type) -> Bool {
            Request.Result.schema["properties"]?["subscription"] != nil
        }
        return methods.contains { $0.method == method && resultIsSubscription($0) }
    }
}

enum CallParams {
    static func read(_ argument: String?) throws(CommandFailure) -> JSONObject {
        let bytes: [UInt8]
        switch argument {
        case nil: return [:]
        case "-"?: bytes = try CommandInput.all(as: "the params")
        case let text?: bytes = Array(text.utf8)
        }
        let value: JSONValue
        do { value = try JSONParser.parse(bytes) } catch {
            throw CommandFailure(.usage, "the params are not valid JSON: \(error)")
        }
        guard let object = value.object else {
            throw CommandFailure(.usage, "params are a JSON object, e.g. '{\"path\":\"/\"}'")
        }
        return object
    }
}

/// `health`: prints the health of the service; ends with 0 when it is ready or degraded. Suitable for a container's
/// health check.
public struct HealthCommand<Target: CommandTarget>: AsyncParsableCommand {
    public static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: "health", abstract: "Print the health of the service.",
            discussion: "Ends with 0 when it is ready or degraded, with 69 when it is neither or does not respond.")
    }

    @OptionGroup var options: ClientOptions

    @Option(help: ArgumentHelp("Ask again until it is ready, for at most so long.", valueName: "seconds"))
    var wait: Double = 0

    public init() {}

    public func validate() throws {
        guard (0...86_400).contains(wait) else { throw ValidationError("--wait is in seconds, 0 to 86400.") }
    }

    public func run() async throws {
        try await CommandSession.run(options, Target.self, takesOnly: true) { client, output in
            try RequestedMember.check(options.only, of: Service.Health.self)
            let end = ContinuousClock.now + .milliseconds(Int(wait * 1000))
            while true {
                do {
                    let answer = try await client.call(method: Service.Health.method, params: [:])
                    let isUp = try Service.Health.decodeResult(answer).isUp
                    if isUp || .now >= end {
                        if let member = options.only {
                            try output.show(member: member, of: answer)
                        } else {
                            try output.show(answer)
                        }
                        if !isUp { throw ExitCode(CommandFailure.Code.unavailable.rawValue) }
                        return
                    }
                } catch let error as RPCError where error.code == .unavailable && .now < end {}
                try await Task.sleep(for: .milliseconds(100))
            }
        }
    }
}

extension Service.Health.Result {
    fileprivate var isUp: Bool { status == .ready || status == .degraded }
}

/// `version`: prints the version of this binary without calling a service.
public struct VersionCommand<Target: CommandTarget>: AsyncParsableCommand {
    public static var configuration: CommandConfiguration {
        CommandConfiguration(commandName: "version", abstract: "Print the version of this command.")
    }

    @Flag(help: "Print JSON, also on a terminal.")
    var json = false

    public init() {}

    public func run() async throws {
        let output = CommandOutput.standard(json: json)
        try await CommandSession.reporting(Target.self, output) {
            let answer: JSONValue = ["service": .string(Target.service), "version": .string(Service.version)]
            if output.isForPeople {
                try output.show(text: "\(Target.command) \(Service.version)")
            } else {
                try output.show(answer)
            }
        }
    }
}
