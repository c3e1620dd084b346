import Foundation

/// Finds programs that were built together with the tests that run.
public enum BuiltProgram {
    /// The path of a program beside the running tests; nil when it was not built.
    public static func path(_ name: String) -> String? {
        folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Test bundles are beside the products they were built with; on macOS the bundle is a folder inside that folder.
    private static var folders: [String] {
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
