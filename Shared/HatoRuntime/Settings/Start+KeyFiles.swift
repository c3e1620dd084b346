public import HatoIdentity
import Logging

extension ServiceProcess.Start {
    /// The keys in the file of the setting `admin-key-file`; none when it is not set, with a log entry about what is
    /// `missing` then. Throws `SettingsError`.
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

    /// The keys in the file of the setting `service-keys-file`; none when it is not set. Throws `SettingsError`.
    public func serviceKeys() throws -> ServiceKeys {
        guard let file = settings.text("service-keys-file") else { return .none }
        // What is wrong with the other file is said by who reads it for its own sake.
        let administrators = settings.text("admin-key-file").flatMap { try? AdministratorKeys(file: $0) }
        let (keys, warning) = try ServiceKeysFile.read(file, besides: administrators ?? .none)
        if let warning { logger.warning("\(warning)") }
        return keys
    }

    /// The first key in the file of the setting `admin-key-file`, to act with; nil when it is not set. Throws
    /// `SettingsError`.
    public func administratorKey() throws -> String? { try firstKey("admin-key-file") }

    /// The first key in the file of the setting `outgoing-key-file`; nil when it is not set, with a log entry about
    /// what is `missing` then. Throws `SettingsError`.
    public func outgoingKey(missing: String) throws -> String? {
        let name = ServeSettings.outgoingKey.name
        let key = try firstKey(name)
        if key == nil { logger.notice("no key to call other services with: \(missing); see --\(name)") }
        return key
    }

    private func firstKey(_ name: String) throws -> String? {
        guard let file = settings.text(name) else { return nil }
        do {
            let keys = try KeyLines(file: file)
            for warning in keys.warnings { logger.warning("\(warning)") }
            return keys.keys.first
        } catch {
            let advice = SecretFile.isMissing(file) ? Self.howToMakeKeys : ""
            throw SettingsError("setting \(name): \(error)\(advice)")
        }
    }

    /// The keys in the file of the setting `key-encryption-file`; nil when it is not set. Throws `SettingsError`.
    public func keyEncryption() throws -> KeyEncryption? {
        let name = ServeSettings.keyEncryption.name
        guard let file = settings.text(name) else { return nil }
        do {
            let encryption = try KeyEncryption(file: file)
            for warning in encryption.warnings { logger.warning("\(warning)") }
            return encryption
        } catch {
            throw SettingsError("setting \(name): \(error)")
        }
    }

    /// The advice for a missing file. Some container engines create a folder in place of a missing secret and mount
    /// that.
    private static let howToMakeKeys =
        "; `make secrets` makes the file that compose.yaml mounts, `openssl rand -base64 36` prints a key"

    /// Refuses the private key in the setting `name` when its owner or mode gives others access. A missing file is left
    /// to the reader. Throws `SettingsError`.
    func checkPrivateKey(_ name: String) throws(SettingsError) {
        guard let file = settings.text(name), let access = SecretFile.access(file) else { return }
        switch access.verdict(for: SecretFile.user) {
        case .safe: return
        case .warning(let text): logger.warning("\(file): \(text)")
        case .refused(let text): throw SettingsError("setting \(name): \(file): \(text)")
        }
    }
}
