import Foundation
import HatoModel
import HatoRPC
import HatoRuntime

/// The rules that `--rules` names: a file, or one of the sets that come with `hato-dev`.
enum DevRules {
    /// The rules of a chat, with a case for every rule beside them in `Rules/`.
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

    /// The error for refused rules. Problems with a position have the form of compilers, a line each:
    /// `FILE:line:column: message`, which editors can open.
    static func refusal(_ error: RPCError, of name: String) -> SettingsError {
        let problems = (error.data["problems"]?.array ?? []).compactMap { problem -> String? in
            guard let line = problem["line"]?.integer, let column = problem["column"]?.integer,
                let message = problem["message"]?.string
            else { return nil }
            return "\(name):\(line):\(column): \(message)"
        }
        guard !problems.isEmpty else { return SettingsError("setting rules: \(name): \(error.message)") }
        return SettingsError((["setting rules: the rules are wrong:"] + problems).joined(separator: "\n"))
    }
}
