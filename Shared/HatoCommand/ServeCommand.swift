public import ArgumentParser

/// A service that its command can start.
public protocol ServingTarget: CommandTarget {
    /// The list of settings for the help.
    static var settingsHelp: String { get }
    /// Runs the service until a signal stops it; returns the exit code.
    static func serve(_ settings: [String]) async -> Int32
    /// Prints the effective settings, secrets hidden; returns the exit code.
    static func showSettings(_ settings: [String]) -> Int32
}

/// `serve`: runs the service until a signal stops it.
public struct ServeCommand<Target: ServingTarget>: AsyncParsableCommand {
    public static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: "serve", abstract: "Run the service until a signal stops it.",
            discussion: "Settings:\n\(Target.settingsHelp)")
    }

    @Argument(parsing: .captureForPassthrough, help: "Settings, as --name value.")
    var settings: [String] = []

    public init() {}

    public func run() async throws {
        if settings.askForHelp { throw CleanExit.helpRequest(Self.self) }
        throw ExitCode(await Target.serve(settings))
    }
}

/// `config`: prints the settings and the source of each, without secrets.
public struct ConfigCommand<Target: ServingTarget>: AsyncParsableCommand {
    public static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: "config",
            abstract: "Print the effective settings of `serve` with the same arguments, secrets hidden.",
            discussion: "Settings:\n\(Target.settingsHelp)")
    }

    @Argument(parsing: .captureForPassthrough, help: "Settings, as --name value.")
    var settings: [String] = []

    public init() {}

    public func run() async throws {
        if settings.askForHelp { throw CleanExit.helpRequest(Self.self) }
        throw ExitCode(Target.showSettings(settings))
    }
}

extension [String] {
    /// Whether the help is requested among settings that are passed on unparsed.
    public var askForHelp: Bool { contains("--help") || contains("-h") }
}
