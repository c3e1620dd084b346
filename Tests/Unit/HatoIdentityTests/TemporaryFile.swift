import Foundation

/// A file that is removed with the object.
final class TemporaryFile {
    let path: String

    init(_ text: String?, mode: Int = 0o600) throws {
        path = NSTemporaryDirectory() + "hato-identity-\(UUID().uuidString)"
        guard let text else { return }
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    var mode: Int? {
        (try? FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
    }

    var text: String? {
        (try? Data(contentsOf: URL(fileURLWithPath: path))).map { String(decoding: $0, as: UTF8.self) }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}
