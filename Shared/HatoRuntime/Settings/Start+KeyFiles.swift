public import HatoIdentity
import Logging

extension ServiceProcess.Start {
    /// The keys in the file of the setting `admin-key-file`; none, with a note that says what is `missing` then, when
    /// it is not set. Throws `SettingsError`.
    public func administratorKeys(
        missing: String = "methods for administrators are closed"
    ) throws -> AdministratorKeys {
        guard let file = settings.text("admin-key-file") else {
            logger.notice("no administrator key: \(missing); see --admin-key-file")
            return .none
        }
        do {
            let keys = try AdministratorKeys(file: file)
            for warning in keys.warnings { logger.warning("\(warning)") }
            return keys
        } catch {
            let advice = SecretFile.isMissing(file) ? Self.howToMakeKeys : ""
            throw SettingsError("setting admin-key-file: \(error)\(advice)")
        }
    }

    /// What to do where there is no file yet. Some container engines make a folder in the place of a missing secret and
    /// mount that.
    private static let howToMakeKeys =
        "; `make secrets` makes the file that compose.yaml mounts, `openssl rand -base64 36` prints a key"

    /// Refuses the private key that the setting `name` names when its owner or mode lets others have it. A file that is
    /// missing is left to the reader. Throws `SettingsError`.
    func checkPrivateKey(_ name: String) throws(SettingsError) {
        guard let file = settings.text(name), let access = SecretFile.access(file) else { return }
        switch access.verdict(for: SecretFile.user) {
        case .safe: return
        case .warning(let text): logger.warning("\(file): \(text)")
        case .refused(let text): throw SettingsError("setting \(name): \(file): \(text)")
        }
    }
}
