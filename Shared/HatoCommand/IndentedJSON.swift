import HatoModel

/// Indented JSON: one member or element per line, small values without inner structure on one line.
enum IndentedJSON {
    private static let lineWidth = 80

    static func bytes(of value: JSONValue) -> [UInt8] {
        var bytes: [UInt8] = []
        append(value, indentation: 0, to: &bytes)
        return bytes
    }

    private static func append(_ value: JSONValue, indentation: Int, to bytes: inout [UInt8]) {
        switch value {
        case .object(let object) where !fits(value, indentation):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in object.members.enumerated() {
                beginLine(index, indentation + 2, &bytes)
                bytes += JSONValue.string(member.name).encoded + Array(": ".utf8)
                append(member.value, indentation: indentation + 2, to: &bytes)
            }
            endLines(indentation, UInt8(ascii: "}"), &bytes)
        case .array(let elements) where !fits(value, indentation):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                beginLine(index, indentation + 2, &bytes)
                append(element, indentation: indentation + 2, to: &bytes)
            }
            endLines(indentation, UInt8(ascii: "]"), &bytes)
        default:
            bytes += value.encoded
        }
    }

    private static func fits(_ value: JSONValue, _ indentation: Int) -> Bool {
        let inner: [JSONValue] =
            switch value {
            case .object(let object): object.members.map(\.value)
            case .array(let elements): elements
            default: []
            }
        guard inner.count <= 8, inner.allSatisfy({ $0.object?.isEmpty ?? $0.array?.isEmpty ?? true }) else {
            return false
        }
        return indentation + value.encoded.count <= lineWidth
    }

    private static func beginLine(_ index: Int, _ indentation: Int, _ bytes: inout [UInt8]) {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "\n"))
        bytes += Array(repeating: UInt8(ascii: " "), count: indentation)
    }

    private static func endLines(_ indentation: Int, _ bracket: UInt8, _ bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\n"))
        bytes += Array(repeating: UInt8(ascii: " "), count: indentation)
        bytes.append(bracket)
    }
}
