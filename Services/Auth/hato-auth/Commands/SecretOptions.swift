import ArgumentParser
import HatoCommand

/// The password of a sign-up or a sign-in.
struct PasswordOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The file whose first line is the password; without it, a line of stdin is read.", valueName: "file"))
    var passwordFile: String?

    func value() throws -> String { try SecretInput.line("password", in: passwordFile) }
}

/// The refresh token of a session.
struct RefreshTokenOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The file whose first line is the refresh token; without it, a line of stdin is read.", valueName: "file"))
    var refreshTokenFile: String?

    func value() throws -> String { try SecretInput.line("refresh token", in: refreshTokenFile) }
}
