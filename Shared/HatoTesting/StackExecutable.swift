import Foundation

/// Finds `hato-dev`.
enum StackExecutable {
    static let name = "hato-dev"

    static var path: String? {
        let environment = ProcessInfo.processInfo.environment
        if let named = environment["HATO_DEV"], !named.isEmpty { return named }
        let inPath = (environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return (inPath + besideTheTests).map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Test bundles lie beside the products they were built with; on macOS the bundle is a folder inside that folder.
    private static var besideTheTests: [String] {
        let starts = CommandLine.arguments.prefix(1) + CommandLine.arguments.filter { $0.contains(".xctest") }
        let files = starts.map { URL(fileURLWithPath: $0) } + [Bundle.main.executableURL].compactMap { $0 }
        return files.flatMap { file in
            var folder = file.deletingLastPathComponent()
            var folders: [String] = []
            for _ in 0..<5 {
                folders.append(folder.path)
                folder = folder.deletingLastPathComponent()
            }
            return folders
        }
    }
}
