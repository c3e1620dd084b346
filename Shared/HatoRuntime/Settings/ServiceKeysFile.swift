import FoundationEssentials
import HatoIdentity
import HatoModel
import Yams

/// The file of the setting `service-keys-file`: a list of entries with `name`, `key`, `methods` and perhaps `as` and
/// `forward`, in YAML or JSON. A key that only forwards needs no `methods`.
enum ServiceKeysFile {
    private static let example = """
        e.g. "- {name: notifier, key: …, methods: [messages.get, messages.follow]}"
        """

    /// Reads the keys. Throws `SettingsError` that names the entry and its member, never with a key.
    ///
    /// - Parameter administrators: whose keys no service may have.
    static func read(
        _ path: String, besides administrators: AdministratorKeys
    ) throws(SettingsError) -> (keys: ServiceKeys, warning: String?) {
        let (bytes, access): ([UInt8], SecretFileAccess)
        do { (bytes, access) = try SecretFile.read(path) } catch {
            throw SettingsError("setting service-keys-file: \(error)")
        }
        var warning: String?
        switch access.verdict(for: SecretFile.user) {
        case .safe: break
        case .warning(let text): warning = "\(path): \(text)"
        case .refused(let text): throw SettingsError("setting service-keys-file: \(path): \(text)")
        }
        return (try keys(String(decoding: bytes, as: UTF8.self), of: path, besides: administrators), warning)
    }

    static func keys(
        _ text: String, of path: String, besides administrators: AdministratorKeys = .none
    ) throws(SettingsError) -> ServiceKeys {
        func problem(_ text: String) -> SettingsError {
            SettingsError("setting service-keys-file: \(path): \(text); \(example)")
        }
        // The parser's errors show the text, which has keys.
        guard let root = try? Yams.compose(yaml: text) else { throw problem("is no YAML or JSON") }
        guard let list = root.sequence else { throw problem("must be a list") }
        var entries: [ServiceKeys.Entry] = []
        for (index, node) in list.enumerated() {
            do { entries.append(try entry(node)) } catch { throw problem("entry \(index + 1): \(error.message)") }
        }
        do { return try ServiceKeys(entries, besides: administrators) } catch { throw problem(error.message) }
    }

    private static func entry(_ node: Node) throws(ArgumentError) -> ServiceKeys.Entry {
        func problem(_ text: String) -> ArgumentError { ArgumentError(reason: "invalid_service_key", text) }
        guard let members = node.mapping else { throw problem("must have name, key and methods") }
        var (name, key): (String?, String?)
        var methods: Set<String>?
        var (mayUseAs, mayForward) = (false, false)
        for (member, value) in members {
            switch member.string {
            case "name": name = value.string
            case "key": key = value.string
            case "methods":
                let names = value.sequence?.compactMap(\.string) ?? []
                guard names.count == value.sequence?.count, !names.isEmpty, names.allSatisfy({ $0.contains(".") })
                else {
                    throw problem("methods must be a list of names of methods, such as auth.follow")
                }
                methods = Set(names)
            case "as":
                guard let bool = value.bool else { throw problem("as must be true or false") }
                mayUseAs = bool
            case "forward":
                guard let bool = value.bool else { throw problem("forward must be true or false") }
                mayForward = bool
            default:
                throw problem("has no member \"\(member.string ?? "")\"; known are as, forward, key, methods, name")
            }
        }
        guard let name, !name.isEmpty else { throw problem("name must be a text") }
        guard let key else { throw problem("\"\(name)\" has no key; make one with: openssl rand -base64 36") }
        guard methods != nil || mayForward else { throw problem("\"\(name)\" has no methods") }
        return ServiceKeys.Entry(
            name: name, key: key, methods: methods ?? [], mayUseAs: mayUseAs, mayForward: mayForward)
    }
}
