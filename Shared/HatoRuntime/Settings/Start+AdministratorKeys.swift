public import HatoIdentity
import Logging

extension ServiceProcess.Start {
    /// The keys in the file of the setting `admin-key-file`; none, with a note that says what is `missing` then, when it
    /// is not set. Throws `SettingsError`.
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
            throw SettingsError("setting admin-key-file: \(error)")
        }
    }
}
