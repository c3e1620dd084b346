public import HatoModel

/// A result as a table on a terminal: columns as wide as their widest cell, numbers right-aligned.
///
/// Cells contain user data: control characters are escaped, never sent to the terminal.
public struct CommandTable: Sendable, Hashable {
    /// The names of the columns.
    public var columns: [String]
    /// The cells, row by row.
    public private(set) var rows: [[String]] = []
    private var isNumeric: [Bool]

    /// An empty table.
    public init(_ columns: [String]) {
        self.columns = columns
        isNumeric = columns.map { _ in true }
    }

    /// A table with a row for each object and a column for each of `columns` (a member's name).
    public init(_ columns: [String], of objects: [JSONValue]) {
        self.init(columns)
        for object in objects { append(columns.map { object[$0] ?? .null }) }
    }

    /// Appends a row with as many cells as there are columns; null is an empty cell.
    public mutating func append(_ cells: [JSONValue]) {
        var row: [String] = []
        for (index, column) in columns.indices.enumerated() {
            let cell = column < cells.count ? cells[column] : .null
            if cell.number == nil, !cell.isNull { isNumeric[index] = false }
            row.append(Self.text(of: cell))
        }
        rows.append(row)
    }

    /// The table with aligned columns.
    public var text: String {
        guard !rows.isEmpty else { return "nothing\n" }
        let widths = columns.indices.map { column in
            rows.reduce(Self.width(columns[column])) { max($0, Self.width($1[column])) }
        }
        return ([columns.map { $0.uppercased() }] + rows).map { row in
            let cells = row.indices.map { column in
                let space = String(repeating: " ", count: max(0, widths[column] - Self.width(row[column])))
                return isNumeric[column] ? space + row[column] : row[column] + space
            }
            var line = cells.joined(separator: "  ")
            while line.last == " " { line.removeLast() }
            return line + "\n"
        }.joined()
    }

    private static func text(of value: JSONValue) -> String {
        switch value {
        case .null: ""
        case .string(let string): shown(string)
        default: shown(String(decoding: value.encoded, as: UTF8.self))
        }
    }

    /// Escapes control characters (C0, DEL, C1, and those that change the direction of text).
    static func shown(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x0A: result.append(contentsOf: "\\n".unicodeScalars)
            case 0x09: result.append(" ")
            case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069:
                result.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
            default: result.append(scalar)
            }
        }
        return String(result)
    }

    /// The number of terminal cells of the text.
    static func width(_ text: String) -> Int {
        text.reduce(0) { $0 + width($1) }
    }

    private static func width(_ character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        switch scalar.value {
        case 0x0300...0x036F, 0x200B...0x200D, 0xFE00...0xFE0F: return 0
        // East Asian wide and full-width forms, and emoji.
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1FAFF,
            0x20000...0x3FFFD:
            return 2
        default: return 1
        }
    }
}
