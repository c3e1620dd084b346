#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Asks for confirmation on the terminal before an irreversible action.
enum TerminalQuestion {
    /// The source of answers: nil when there is no terminal.
    typealias Answers = @Sendable () -> (@Sendable () -> String?)?

    /// Replaces the process's own stdin in tests.
    @TaskLocal static var substitute: Answers?

    /// Returns when the answer is yes. Throws `CommandFailure` for every other one, and when stdin is no terminal: a
    /// script gives `--yes`.
    static func ask(_ question: String, _ output: CommandOutput) throws(CommandFailure) {
        guard let answer = (substitute ?? terminal)() else {
            throw CommandFailure(.usage, "\(question) Stdin is no terminal to ask: give --yes if it is meant")
        }
        output.draw("\(question) [y/N] ")
        guard let text = answer(), ["y", "yes"].contains(text.lowercased()) else {
            throw CommandFailure(.refused, "not confirmed, nothing was done")
        }
    }

    private static let terminal: Answers = {
        guard isatty(0) == 1 else { return nil }
        return { readLine() }
    }
}
