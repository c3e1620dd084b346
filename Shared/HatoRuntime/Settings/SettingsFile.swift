import FoundationEssentials
import HatoRPC
import Yams

/// The keys of a settings file in YAML or JSON (which is YAML too), chosen for one environment.
///
/// Keys at the top apply to every environment; those under `development`, `staging` or `production` override them when
/// that environment is chosen. Nested names are joined with a hyphen: `tls: {key: …}` is the setting `tls-key`.
public struct SettingsFile: Sendable {
    /// The environments that a file may have sections for.
    public static let environments = ["development", "staging", "production"]

    /// The path of the file.
    public var path: String
    /// The values by the name of the setting.
    public var values: [String: String]

    public init(path: String, values: [String: String]) {
        self.path = path
        self.values = values
    }

    /// Reads the file at `path`. Throws `SettingsError` that names the file and the position.
    public init(path: String, environment: String) throws {
        if let problem = FileProblem.ofReading(path) {
            throw SettingsError("setting config: \(path) cannot be read: \(problem)")
        }
        let text: String
        do {
            text = try String(contentsOf: URL(filePath: path), encoding: .utf8)
        } catch {
            throw SettingsError("setting config: \(path) is not in UTF-8")
        }
        try self.init(path: path, text: text, environment: environment)
    }

    init(path: String, text: String, environment: String) throws {
        let root: Node?
        do {
            root = try Yams.compose(yaml: text)
        } catch {
            throw SettingsError("settings file \(path) is no YAML or JSON: \(error)")
        }
        guard let root else {
            self.init(path: path, values: [:])
            return
        }
        guard case .mapping(let mapping) = root else {
            throw SettingsError("settings file \(path) must hold names and values, such as 'port: 7702'")
        }
        var general: [String: String] = [:]
        var chosen: [String: String] = [:]
        for (key, value) in mapping {
            let name = key.string ?? ""
            if Self.environments.contains(name) {
                guard value.mapping != nil else {
                    throw SettingsError("section \(name) in \(path) must hold names and values")
                }
                if name == environment { try Self.flatten(value, "", path, into: &chosen) }
            } else {
                try Self.flatten(value, name, path, into: &general)
            }
        }
        self.init(path: path, values: general.merging(chosen) { $1 })
    }

    private static func flatten(_ node: Node, _ name: String, _ path: String, into values: inout [String: String])
        throws
    {
        switch node {
        case .scalar(let scalar):
            values[name] = scalar.string
        case .mapping(let mapping):
            for (key, value) in mapping {
                let inner = key.string ?? ""
                try flatten(value, name.isEmpty ? inner : "\(name)-\(inner)", path, into: &values)
            }
        default:
            throw SettingsError("'\(name)' in \(path) must be one value, not a list")
        }
    }
}
