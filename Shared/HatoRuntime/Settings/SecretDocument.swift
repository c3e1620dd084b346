import FoundationEssentials
import HatoIdentity
public import HatoModel
import Logging
import Yams

/// A file in YAML or JSON that holds secrets, or names files that do.
public enum SecretDocument {
    /// A document and what is to be said of who can read its file.
    public struct Contents: Sendable {
        /// Objects, arrays and texts: what is a number or a boolean in YAML is the text that stands there.
        public var document: JSONValue
        /// Why the mode of the file should be another one; nil when it is right.
        public var warning: String?
    }

    /// Reads the file of a setting. Throws `SettingsError`, never with what stands in the file, when it cannot be read,
    /// may be read by others, or is no YAML.
    public static func read(_ path: String, setting: String) throws(SettingsError) -> Contents {
        let (bytes, warning) = try secret(path, setting: setting)
        // The parser's errors show the text, which may have secrets.
        guard let root = try? Yams.compose(yaml: String(decoding: bytes, as: UTF8.self)), let document = value(root, 0)
        else { throw SettingsError("setting \(setting): \(path): is no YAML or JSON, or names a member twice") }
        return Contents(document: document, warning: warning)
    }

    /// Reads a file that has a secret, such as a key. Throws `SettingsError` when it cannot be read, or may be read by
    /// others, which a file of certificates may.
    public static func secret(
        _ path: String, setting: String
    ) throws(SettingsError) -> (bytes: [UInt8], warning: String?) {
        let (bytes, access): ([UInt8], SecretFileAccess)
        do { (bytes, access) = try SecretFile.read(path) } catch { throw SettingsError("setting \(setting): \(error)") }
        // Certificates are no secret; others may still not write them.
        if isCertificates(bytes), access.isWrittenOnly(by: SecretFile.user) { return (bytes, nil) }
        switch access.verdict(for: SecretFile.user) {
        case .safe: return (bytes, nil)
        case .warning(let text): return (bytes, "\(path): \(text)")
        case .refused(let text): throw SettingsError("setting \(setting): \(path): \(text)")
        }
    }

    /// Whether a text in PEM has certificates and nothing else.
    private static func isCertificates(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.hasPrefix("-----BEGIN ") else { return false }
        return text.split(separator: "-----BEGIN ").allSatisfy { $0.hasPrefix("CERTIFICATE-----") }
    }

    /// Nil when it is nested too deeply, or names a member twice.
    private static func value(_ node: Node, _ depth: Int) -> JSONValue? {
        guard depth < 16 else { return nil }
        if let mapping = node.mapping {
            var object = JSONObject()
            for (name, member) in mapping {
                guard let name = name.string, object[name] == nil, let value = value(member, depth + 1) else {
                    return nil
                }
                object[name] = value
            }
            return .object(object)
        }
        if let sequence = node.sequence {
            var array: [JSONValue] = []
            for element in sequence {
                guard let value = value(element, depth + 1) else { return nil }
                array.append(value)
            }
            return .array(array)
        }
        return node.scalar.map { .string($0.string) }
    }
}

extension ServiceProcess.Start {
    /// What reads the file of a setting, which `read` understands, again and again; nil when the setting is not set.
    /// `read` gets the document, and what reads a file that the document names, relative to its folder. Throws
    /// nothing itself; the reader throws a `SettingsError` that names the setting.
    public func reader<Value: Sendable>(
        of setting: String,
        _ read: @escaping @Sendable (JSONValue, @escaping @Sendable (String) throws -> [UInt8]) throws -> Value
    ) -> (@Sendable () throws -> Value)? {
        guard let path = settings.text(setting) else { return nil }
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
        return { [logger] in
            let contents = try SecretDocument.read(path, setting: setting)
            if let warning = contents.warning { logger.warning("\(warning)") }
            do {
                return try read(contents.document) { name in
                    let file = name.hasPrefix("/") ? name : folder + name
                    let (bytes, warning) = try SecretDocument.secret(file, setting: setting)
                    if let warning { logger.warning("\(warning)") }
                    return bytes
                }
            } catch let error as ArgumentError {
                throw SettingsError("setting \(setting): \(path): \(error.message)")
            }
        }
    }
}
