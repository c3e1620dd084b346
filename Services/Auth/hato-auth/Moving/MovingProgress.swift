import Foundation
import HatoCommand
import HatoModel

/// How far an import has come; kept in a file beside the imported one, so that another run goes on from there.
struct MovingProgress: FieldObject, Hashable {
    /// Accounts of the file that were sent, or could not be read.
    var accounts = 0
    var imported = 0
    var refused = 0
    /// The size of the file: another size is another file.
    var fileBytes = 0

    static let fields = Fields<Self>(
        blank: Self(),
        .required("accounts", \.accounts), .required("imported", \.imported), .required("refused", \.refused),
        .required("fileBytes", \.fileBytes))

    static func path(of file: String) -> String { file + ".progress" }

    /// The progress of an import that was cut off. Throws `CommandFailure` when there is none for this file.
    static func read(of file: String, size: Int) throws -> MovingProgress {
        let path = path(of: file)
        guard FileManager.default.fileExists(atPath: path) else {
            throw CommandFailure(
                .inputOutput,
                "there is nothing to continue: no import of '\(file)' was cut off ('\(path)' is not there); "
                    + "import it without --continue")
        }
        let bytes = try CommandInput.bytes(of: path)
        guard let json = try? JSONParser.parse(bytes), let progress = try? Self(json: json, unknown: .rejected),
            progress.fileBytes == size
        else {
            throw CommandFailure(
                .inputOutput, "'\(path)' is not the progress of an import of '\(file)' as it is now; import it anew")
        }
        return progress
    }

    /// Replaces the file whole. Throws `CommandFailure`.
    func write(of file: String) throws {
        let path = Self.path(of: file)
        do { try Data(json.encoded).write(to: URL(filePath: path), options: .atomic) } catch {
            throw CommandFailure(.inputOutput, "cannot write '\(path)': \(error.localizedDescription)")
        }
    }

    static func remove(of file: String) { try? FileManager.default.removeItem(atPath: path(of: file)) }
}
