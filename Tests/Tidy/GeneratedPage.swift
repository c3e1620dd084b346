import Foundation

/// A page that is made from declarations. With `HATO_WRITE_PAGES` in the environment its file is written again.
struct GeneratedPage {
    /// The path of the file, relative to the root of the repository.
    var path: String
    var text: String

    func isUpToDate() throws -> Bool {
        let repository = Repository()
        if ProcessInfo.processInfo.environment["HATO_WRITE_PAGES"] != nil {
            try text.write(to: repository.root.appending(path: path), atomically: true, encoding: .utf8)
        }
        return (try? repository.text(path)) == text
    }
}
