import Foundation
import HatoRPC
import HatoRuntime

/// The rules that `--rules` names: a file, or one of the sets that come with `hato-dev`.
enum DevRules {
    /// The rules of a chat as people build them, with a case for every rule beside them in `Rules/`.
    static let chat = "chat"

    /// Throws `SettingsError` for a file that cannot be read.
    static func text(of name: String) throws -> String {
        if name == chat { return String(decoding: PackageResources.chat_rules_json, as: UTF8.self) }
        if let problem = FileProblem.ofReading(name) {
            throw SettingsError("setting rules: \(name) cannot be read: \(problem)")
        }
        do { return try String(contentsOfFile: name, encoding: .utf8) } catch {
            throw SettingsError("setting rules: \(name) is not in UTF-8")
        }
    }
}
