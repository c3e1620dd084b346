import HatoModel

/// One line of a chat log: `{"room","at","sender","text"}`, `at` in milliseconds since 1970.
struct ChatLine: Sendable, Hashable {
    var room: String
    var at: Int64
    var sender: String
    var text: String

    /// Throws `ChatLineProblem` with the problem of the line.
    init(_ bytes: [UInt8]) throws(ChatLineProblem) {
        let value: JSONValue
        do { value = try JSONParser.parse(bytes) } catch { throw ChatLineProblem("is no JSON: \(error)") }
        guard let object = value.object else { throw ChatLineProblem("is no JSON object") }
        room = try Self.name(object, "room")
        sender = try Self.name(object, "sender")
        guard let text = object["text"]?.string else { throw ChatLineProblem("has no string \"text\"") }
        guard text.utf8.count <= TreeLimits.stringBytesMax else {
            throw ChatLineProblem(
                "has a \"text\" that is longer than a string may be (\(TreeLimits.stringBytesMax) bytes)")
        }
        guard text.utf8.count < Self.escapedBytesMax / 6 || JSONValue.string(text).encoded.count < Self.escapedBytesMax
        else { throw ChatLineProblem("has a \"text\" that is longer, escaped, than a request may be") }
        self.text = text
        guard let at = object["at"]?.number, let milliseconds = Int64(exactly: at),
            (0..<Self.atEnd).contains(milliseconds)
        else { throw ChatLineProblem("has no \"at\" in milliseconds since 1970") }
        self.at = milliseconds
    }

    /// A request has at most 16 MiB, with the parts beside its longest text. A byte is escaped in at most six.
    private static let escapedBytesMax = 14 << 20

    /// A push key has 48 bits for the time.
    private static let atEnd: Int64 = 1 << 48

    private static func name(_ object: JSONObject, _ member: String) throws(ChatLineProblem) -> String {
        guard let name = object[member]?.string, !name.isEmpty else {
            throw ChatLineProblem("has no string \"\(member)\"")
        }
        guard KeyEscaping.escape(name).utf8.count <= TreeLimits.keyBytesMax else {
            throw ChatLineProblem(
                "has a \"\(member)\" that is longer than a key may be (\(TreeLimits.keyBytesMax) bytes)")
        }
        return name
    }
}

/// The problem of a line, as the end of a sentence that begins with its number.
struct ChatLineProblem: Error, Sendable, Hashable, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}
