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
    /// Creates the service's data folder `data`, which must be empty or missing, from the folder of a backup; blocks
    /// until it is done. Returns the members to print, e.g. `{"version":19,"epoch":"…"}`. An error has a description
    /// for people and means that nothing was restored.
    static func restore(_ backup: String, to data: String) throws -> JSONObject
}

/// `restore BACKUP --data DIR`: restores a backup offline (protocol §5, §8).
public struct RestoreCommand<Target: RestoringTarget>: AsyncParsableCommand {
    public static var configuration: CommandConfiguration {
        CommandConfiguration(
            commandName: "restore", abstract: "Make a data folder from a backup, for `serve` to be started on.",
            discussion: """
                The data folder must be empty or missing; the backup is checked to its end and stays as it is. The \
                restored store has an epoch of its own: followers of the old one are refused, and begin again.
                """)
    }

    @Argument(help: ArgumentHelp("The backup's folder.", valueName: "backup"))
    var backup: String

    @Option(help: ArgumentHelp("The data folder to make, empty or missing.", valueName: "dir"))
    var data: String

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
                for member in try Target.restore(backup, to: data).members { answer[member.name] = member.value }
            } catch {
                throw CommandFailure(.inputOutput, "nothing was restored: \(error)")
            }
            try output.show(.object(answer))
        }
    }
}
