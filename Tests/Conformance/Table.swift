import Foundation
import HatoModel

/// A table of facts: a JSON file in `Tables/`, read with the project's own parser.
struct Table {
    let json: JSONValue

    init(_ name: String, file: StaticString = #filePath) throws {
        let folder = URL(filePath: "\(file)").deletingLastPathComponent()
        let data = try Data(contentsOf: folder.appending(path: "Tables/\(name).json"))
        json = try JSONParser.parse([UInt8](data).span)
    }

    /// The rows under `name`; a table without them is broken.
    func rows(_ name: String) throws -> [JSONValue] {
        guard let rows = json[name]?.array, !rows.isEmpty else { throw TableError(missing: name) }
        return rows
    }
}

struct TableError: Error {
    var missing: String
}

extension JSONValue {
    /// The required member of a row.
    func required(_ name: String) throws -> JSONValue {
        guard let value = self[name] else { throw TableError(missing: name) }
        return value
    }

    func requiredString(_ name: String) throws -> String {
        guard let value = self[name]?.string else { throw TableError(missing: name) }
        return value
    }

    /// The table as text, for messages.
    var text: String {
        var writer = JSONWriter()
        writer.write(self)
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
