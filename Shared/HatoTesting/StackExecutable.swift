import Foundation

/// Finds `hato-dev`.
enum StackExecutable {
    static let name = "hato-dev"

    static var path: String? {
        let environment = ProcessInfo.processInfo.environment
        if let named = environment["HATO_DEV"], !named.isEmpty { return named }
        let inPath = (environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" }
        return inPath.first { FileManager.default.isExecutableFile(atPath: $0) } ?? BuiltProgram.path(name)
    }
}
