import HatoModel

/// Turns a value in export form, as the events of a listener have it, into plain form, as a GET returns it: without
/// priorities, and with arrays where all keys are indexes (spec realtime-database §2.1). Text to text.
struct PlainForm {
    /// Objects in each other: a tree has 32 levels.
    private static let depthMax = TreeLimits.depthMax + 2

    private var writer = JSONWriter(capacity: 256)

    /// The plain form of a value; nil when the text is no JSON of a service.
    static func plain(_ text: Span<UInt8>, in range: Range<Int>) -> [UInt8]? {
        var form = PlainForm()
        var scanner = JSONTextScanner(at: range.lowerBound)
        return form.write(text, &scanner, depth: 0) ? form.writer.bytes : nil
    }

    /// The plain form of a query's result: its children in key order, never an array.
    static func plainResult(_ text: Span<UInt8>, in range: Range<Int>) -> [UInt8]? {
        var form = PlainForm()
        var scanner = JSONTextScanner(at: range.lowerBound)
        guard scanner.take(UInt8(ascii: "{"), text) else { return plain(text, in: range) }
        if scanner.take(UInt8(ascii: "}"), text) { return Array("null".utf8) }
        guard form.writeObject(text, &scanner, depth: 0) else { return nil }
        return form.writer.count == 2 ? Array("null".utf8) : ValuePrinting.inKeyOrder(form.writer.bytes)
    }

    /// Whether the name of a member, or the last key of a path, is `.priority`.
    static func isPriority(_ text: Span<UInt8>, _ name: Range<Int>) -> Bool {
        let length = 9
        guard name.count >= length else { return false }
        let start = name.upperBound - length
        guard JSONTextScanner.matches(text, start..<name.upperBound, ".priority") else { return false }
        return name.count == length || text[start - 1] == UInt8(ascii: "/")
    }

    private mutating func write(_ text: Span<UInt8>, _ scanner: inout JSONTextScanner, depth: Int) -> Bool {
        guard depth <= Self.depthMax else { return false }
        guard scanner.nextByte(text) == UInt8(ascii: "{") else {
            guard let range = scanner.takeValue(text) else { return false }
            writer.write(encoded: text, range)
            return true
        }
        let start = scanner
        _ = scanner.take(UInt8(ascii: "{"), text)
        if scanner.take(UInt8(ascii: "}"), text) {
            writer.writeNull()
            return true
        }
        var first = scanner
        guard var name = first.takeName(text) else { return false }
        if Self.isPriority(text, name) {
            guard first.takeValue(text) != nil, first.take(UInt8(ascii: ","), text), let next = first.takeName(text)
            else { return false }
            name = next
        }
        if JSONTextScanner.matches(text, name, ".value") { return writeLeaf(text, &scanner, at: first) }
        if Self.index(text, name) != nil {
            scanner = start
            return writeIndexed(text, &scanner, depth: depth)
        }
        return writeObject(text, &scanner, depth: depth)
    }

    /// Writes the value of an object with `.value`, and passes over the object.
    ///
    /// - Parameter value: where the value begins; `scanner` is at the first name.
    private mutating func writeLeaf(
        _ text: Span<UInt8>, _ scanner: inout JSONTextScanner, at value: JSONTextScanner
    ) -> Bool {
        scanner = value
        guard let range = scanner.takeValue(text) else { return false }
        writer.write(encoded: text, range)
        while scanner.take(UInt8(ascii: ","), text) {
            guard scanner.takeName(text) != nil, scanner.takeValue(text) != nil else { return false }
        }
        return scanner.take(UInt8(ascii: "}"), text)
    }

    /// Writes the members of an object that has some; `scanner` is at the first name.
    private mutating func writeObject(_ text: Span<UInt8>, _ scanner: inout JSONTextScanner, depth: Int) -> Bool {
        writer.beginObject()
        repeat {
            guard let name = scanner.takeName(text) else { return false }
            if Self.isPriority(text, name) {
                guard scanner.takeValue(text) != nil else { return false }
            } else {
                writer.member(text, name)
                guard write(text, &scanner, depth: depth + 1) else { return false }
            }
        } while scanner.take(UInt8(ascii: ","), text)
        writer.endObject()
        return scanner.take(UInt8(ascii: "}"), text)
    }

    /// Writes an object whose first key is an index; `scanner` is at its brace.
    private mutating func writeIndexed(_ text: Span<UInt8>, _ scanner: inout JSONTextScanner, depth: Int) -> Bool {
        let start = scanner
        guard let range = scanner.takeValue(text), var members = JSONTextScanner.members(text, in: range) else {
            return false
        }
        members.removeAll { Self.isPriority(text, $0.name) }
        guard let indexes = Self.indexes(of: members, text) else {
            scanner = start
            _ = scanner.take(UInt8(ascii: "{"), text)
            return writeObject(text, &scanner, depth: depth)
        }
        return write(members, indexes, text, depth: depth)
    }

    /// Writes an array; missing elements are null.
    private mutating func write(
        _ members: [JSONTextScanner.Member], _ indexes: [Int], _ text: Span<UInt8>, depth: Int
    ) -> Bool {
        writer.beginArray()
        var next = 0
        for (index, member) in zip(indexes, members) {
            while next < index {
                writer.writeNull()
                next += 1
            }
            var scanner = JSONTextScanner(at: member.value.lowerBound)
            guard write(text, &scanner, depth: depth + 1) else { return false }
            next += 1
        }
        writer.endArray()
        return true
    }

    /// The indexes of an array's elements; nil when the object stays one. Children are in key order, so that the first
    /// key decides for most objects.
    private static func indexes(of members: [JSONTextScanner.Member], _ text: Span<UInt8>) -> [Int]? {
        var indexes: [Int] = []
        for member in members {
            guard let index = index(text, member.name) else { return nil }
            if let last = indexes.last, index <= last { return nil }
            indexes.append(index)
        }
        guard let last = indexes.last, last < 2 * indexes.count else { return nil }
        return indexes
    }

    /// A key as an array's index: `0`, `1`, `10`, but not `01` or `-1`.
    private static func index(_ text: Span<UInt8>, _ name: Range<Int>) -> Int? {
        guard 1...10 ~= name.count else { return nil }
        var value = 0
        for position in name {
            let digit = text[position] &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            value = value * 10 + Int(digit)
        }
        let hasLeadingZero = name.count > 1 && text[name.lowerBound] == UInt8(ascii: "0")
        return hasLeadingZero || value > Int(Int32.max) ? nil : value
    }
}

extension JSONWriter {
    /// The name of a member that is already escaped, without its quotes.
    fileprivate mutating func member(_ text: Span<UInt8>, _ name: Range<Int>) {
        write(encoded: text, name.lowerBound - 1..<name.upperBound + 1)
        truncate(to: count, valueFollows: true)
        appendRaw(UInt8(ascii: ":"))
    }
}
