public import HatoModel

/// Turns a rules text into JSON (RFC 8259).
public enum RulesJSON {
    /// The same members in the same order, without comments, trailing commas and blanks; line breaks in strings are
    /// escaped. Throws `RulesProblems` for a text that is no JSON with comments, whatever its rules mean.
    public static func strict(_ text: String) throws(RulesProblems) -> String {
        let source = RulesSource(text)
        let document: RulesDocument.Value
        do { document = try RulesDocumentParser.parse(source) } catch { throw source.problems([error]) }
        var writer = JSONWriter()
        writer.write(document.json)
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

extension RulesDocument.Value {
    fileprivate var json: JSONValue {
        switch kind {
        case .object(let members):
            .object(JSONObject(uniqueMembers: members.map { JSONObject.Member($0.name, $0.value.json) }))
        case .array(let elements): .array(elements.map(\.json))
        case .string(let text): .string(text.text)
        case .number(let number): .number(number)
        case .bool(let bool): .bool(bool)
        case .null: .null
        }
    }
}
