import Foundation
import HatoIdentity
import HatoModel
import HatoRocksDB
import HatoRuntime

/// The folder of all data, and the administrator key that is created with it.
struct DevFolder: Sendable {
    let path: String
    private let isTemporary: Bool
    private let warn: @Sendable (String) -> Void

    /// Makes the folder, readable by its owner alone, if it does not exist. Throws `SettingsError`.
    init(_ settings: Settings, warn: @escaping @Sendable (String) -> Void) throws {
        self.warn = warn
        isTemporary = settings.flag("ephemeral")
        if isTemporary, let source = settings.source(of: "data") {
            throw SettingsError(
                "settings ephemeral and data (\(source)) contradict each other: one keeps no data, the other names its folder"
            )
        }
        let temporary = URL.temporaryDirectory.appending(path: "hato-\(UUID().uuidString)").path
        path = isTemporary ? temporary : settings["data"]
        if let warning = try DataFolder.make(path) { warn(warning) }
    }

    /// A store in the data folder of its service, as `serve` of that service has it: so its `restore` and `serve` fit.
    /// Folders of former versions, which are the store itself, stay as they are.
    func store(_ service: String) throws -> String {
        let data = "\(path)/\(service)"
        // Also without its `format`: opening the store then reports that, instead of beginning an empty store inside
        // it.
        let isStore = ["format", "rocksdb"].contains { FileManager.default.fileExists(atPath: "\(data)/\($0)") }
        if isStore { return data }
        if let warning = try DataFolder.make(data) { warn(warning) }
        return RocksDBStore.folder(in: data)
    }

    /// The file of the public keys of auth, with which a service starts while auth is down.
    func keysFile(_ service: String) -> String { "\(path)/\(service)-auth-keys.json" }

    var administratorKeyFile: String { "\(path)/admin-key" }

    /// The administrator keys of this folder; creates one the first time.
    func administratorKeys() throws -> AdministratorKeys {
        if !FileManager.default.fileExists(atPath: administratorKeyFile) {
            try SecretFile.replace(administratorKeyFile, with: Array("\(Self.newKey())\n".utf8))
        }
        return try AdministratorKeys(file: administratorKeyFile)
    }

    /// A random key of 288 bits.
    static func newKey() -> String {
        var random = SystemRandomNumberGenerator()
        return Base64.url.encode((0..<36).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    }

    /// The first key of the file.
    func administratorKey() throws -> String {
        try AdministratorKeys.first(inFile: administratorKeyFile) ?? ""
    }

    /// Deletes a temporary folder; any other folder stays.
    func leave() {
        if isTemporary { try? FileManager.default.removeItem(atPath: path) }
    }
}
