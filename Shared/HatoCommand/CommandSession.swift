import ArgumentParser
import Foundation
import HatoModel

/// Runs the work of a command: connects, prints, closes; reports errors on stderr and with an exit code.
public enum CommandSession {
    /// Runs the work of a command that calls a service. Throws `ExitCode` after the error is on stderr.
    ///
    /// - Parameter takesOnly: whether the command prints one result, of which `--only` can name a member; other
    ///   commands refuse `--only` before they call the service.
    public static func run<Target: CommandTarget>(
        _ options: ClientOptions, _ target: Target.Type, takesOnly: Bool = false,
        _ work: (CommandClient, CommandOutput) async throws -> Void
    ) async throws {
        let output = CommandOutput.standard(json: options.json)
        try await reporting(Target.self, output) {
            if options.only != nil, !takesOnly {
                throw CommandFailure(.usage, "--only is for commands that print one result")
            }
            let settings = try ClientSettings(options, target, environment: ProcessInfo.processInfo.environment)
            let client = CommandClient(settings)
            do {
                try await work(client, output)
            } catch {
                await client.close()
                throw error
            }
            await client.close()
        }
    }

    /// Runs the work of a command that calls no service.
    ///
    /// - Throws: `ExitCode` when `work` has thrown; the error is then on standard error.
    public static func reporting<Target: CommandTarget>(
        _ target: Target.Type, _ output: CommandOutput, _ work: () async throws -> Void
    ) async throws {
        do {
            try await work()
        } catch let error as ExitCode {
            throw error
        } catch {
            let failure = CommandFailure(error)
            output.complain("\(Target.command): \(failure.report)")
            throw ExitCode(failure.code.rawValue)
        }
    }
}
