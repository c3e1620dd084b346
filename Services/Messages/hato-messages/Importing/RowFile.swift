import HatoCommand
import HatoModel

/// The rows for `messages.import` in a file or in stdin: as lines of `export`, or as one JSON tree. It is read a block
/// at a time, however large it is.
final class RowFile {
    private enum Form {
        case lines(count: Int)
        case tree(TreeRowReader)
    }

    private let file: LineFile
    private var form: Form
    private var isAtEnd = false
    /// Nil when rows are not compared with each other.
    private var places: RowConflictFinder?

    /// `-` is stdin.
    ///
    /// - Parameter comparesRows: whether rows that contradict each other are refused; false for a file that was read so
    ///   before.
    init(path: String, comparesRows: Bool) throws(CommandFailure) {
        file = try LineFile(path: path)
        let first = try file.firstByte()
        let isTree = first == UInt8(ascii: "{") || path.hasSuffix(".json") || path.hasSuffix(".json.gz")
        form = isTree ? .tree(TreeRowReader()) : .lines(count: 0)
        // In a tree, only duplicate names could contradict each other, and its reader refuses them.
        if comparesRows, !isTree { places = RowConflictFinder() }
    }

    /// A path and a primitive; nil after the last row.
    func next() throws(CommandFailure) -> [JSONValue]? {
        switch form {
        case .lines: return try nextLine()
        case .tree(var reader):
            // Not a second reference: else it would be copied with every row.
            form = .lines(count: 0)
            defer { form = .tree(reader) }
            return try nextRow(&reader)
        }
    }

    private func nextRow(_ reader: inout TreeRowReader) throws(CommandFailure) -> [JSONValue]? {
        while true {
            do {
                if let row = try reader.nextRow() { return row }
            } catch let error as JSONError {
                throw CommandFailure(.inputOutput, "'\(file.name)' is not valid JSON: \(error)")
            } catch let error as ArgumentError {
                throw CommandFailure(.inputOutput, "'\(file.name)' is no tree. \(error.message)")
            } catch {
                throw CommandFailure(error)
            }
            if isAtEnd { return nil }
            if let block = try file.nextBlock() {
                reader.append(block)
            } else {
                reader.finish()
                isAtEnd = true
            }
        }
    }

    private func nextLine() throws(CommandFailure) -> [JSONValue]? {
        guard case .lines(var number) = form else { return nil }
        defer { form = .lines(count: number) }
        while let line = try file.next() {
            number += 1
            guard let line else {
                throw CommandFailure(.inputOutput, "line \(number) of \(file.name) is \(LineFile.tooLong)")
            }
            guard !line.isEmpty else { continue }
            guard let row = try? JSONParser.parse(line).array, row.count == 2, let place = row[0].string,
                row[1].isPrimitive
            else {
                throw CommandFailure(
                    .inputOutput, "line \(number) of \(file.name) is no row, such as [\"/title\",\"磯野家\"]")
            }
            let path: TreePath
            do { path = try TreePath(place) } catch {
                throw CommandFailure(.inputOutput, "line \(number) of \(file.name): \(error.message)")
            }
            if let problem = places?.problem(with: path) {
                throw CommandFailure(.inputOutput, "line \(number) of \(file.name) \(problem)")
            }
            return row
        }
        return nil
    }
}

extension JSONValue {
    fileprivate var isPrimitive: Bool {
        switch self {
        case .bool, .number, .string: true
        case .null, .array, .object: false
        }
    }
}
