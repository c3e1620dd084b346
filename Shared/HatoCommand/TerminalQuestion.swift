#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Asks the person at the terminal before something is done that cannot be taken back.
enum TerminalQuestion {
    /// Where the answer comes from: nil when nobody can be asked.
    typealias Answers = @Sendable () -> (@Sendable () -> String?)?

    /// What tests answer instead of the process's own stdin.
    @TaskLocal static var substitute: Answers?

    /// Returns when the answer is yes. Throws `CommandFailure` for every other one, and when stdin is no terminal: a
    /// script says what it wants with `--yes`.
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
