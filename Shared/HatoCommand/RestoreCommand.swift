public import ArgumentParser
import Foundation
public import HatoModel

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A service whose data can be restored while no service runs.
public protocol RestoringTarget: CommandTarget {
    /// The options of this service besides those of every restore.
    associatedtype RestoreOptions: ParsableArguments = NoRestoreOptions

    /// What the restore does with this service's data, for the help; empty when there is nothing to say.
    static var restoreDiscussion: String { get }

    /// Creates the service's data folder `data`, which must be empty or missing, from the folder of a backup; blocks
    /// until it is done. Returns the members to print, e.g. `{"version":19,"epoch":"…"}`. An error has a description
    /// for people and means that nothing was restored.
    static func restore(_ backup: String, to data: String, _ options: RestoreOptions) throws -> JSONObject
}

extension RestoringTarget {
    public static var restoreDiscussion: String { "" }
}

/// No options.
public struct NoRestoreOptions: ParsableArguments {
    public init() {}
}

/// `restore BACKUP --data DIR`: restores a backup offline (protocol §5, §8).
public struct RestoreCommand<Target: RestoringTarget>: AsyncParsableCommand {
    public static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: "restore", abstract: "Make a data folder from a backup, for `serve` to be started on.",
            discussion: """
                The data folder must be empty or missing; the backup is checked to its end and stays as it is. The \
                restored store has an epoch of its own: followers of the old one are refused, and begin again.
                """ + Target.restoreDiscussion)
    }

    @Argument(help: ArgumentHelp("The backup's folder.", valueName: "backup"))
    var backup: String

    @Option(help: ArgumentHelp("The data folder to make, empty or missing.", valueName: "dir"))
    var data: String

    @OptionGroup
    var options: Target.RestoreOptions

    @Flag(help: "Print JSON, also on a terminal.")
    var json = false

    public init() {}

    public func run() async throws {
        let output = CommandOutput.standard(json: json)
        try await CommandSession.reporting(Target.self, output) {
            // Restored data may hold secrets: it is accessible to this user only, including the files a store creates.
            _ = umask(0o077)
            var answer: JSONObject = ["data": .string(data)]
            do {
                for member in try Target.restore(backup, to: data, options).members {
                    answer[member.name] = member.value
                }
            } catch {
                throw CommandFailure(.inputOutput, "nothing was restored: \(error)")
            }
            try output.show(.object(answer))
        }
    }
}
