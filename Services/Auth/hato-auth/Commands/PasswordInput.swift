import ArgumentParser
import HatoCommand

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The password of a command: from the flag, otherwise from a line of stdin, with a prompt without echo on a terminal.
struct PasswordOption: ParsableArguments {
    @Option(help: "The password; others on this machine can see it. Without it, a line of stdin is read.")
    var password: String?

    func value() throws -> String {
        if let password { return password }
        guard isatty(0) == 1 else { return try Self.line() }
        var shown = termios()
        guard tcgetattr(0, &shown) == 0 else { return try Self.line() }
        var hidden = shown
        hidden.c_lflag &= ~tcflag_t(ECHO)
        CommandOutput.standard(json: false).complain("Password:")
        tcsetattr(0, TCSAFLUSH, &hidden)
        defer { tcsetattr(0, TCSAFLUSH, &shown) }
        return try Self.line()
    }

    private static func line() throws -> String {
        guard let line = readLine() else {
            throw CommandFailure(.usage, "no password: give --password, or a line on stdin")
        }
        return line
    }
}
