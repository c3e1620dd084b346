import HatoModel

/// The blocks of an event stream for the events of a listener.
struct EventText {
    private let isExport: Bool
    private let hasQuery: Bool
    private var text: [UInt8] = []

    init(_ request: RESTRequest) {
        isExport = request.options.isExport
        hasQuery = request.query != nil
    }

    /// A block with a name and one line of data.
    static func block(_ name: String, _ data: String) -> [UInt8] {
        Array("event: \(name)\ndata: \(data)\n\n".utf8)
    }

    /// The blocks for the events of one notification; nil when they are not what a service sends. A line end would end
    /// a block.
    consuming func blocks(_ members: [UInt8]) -> [UInt8]? {
        guard !members.contains(where: { $0 == 0x0A || $0 == 0x0D }),
            let range = ResultMembers(members)?.range(of: "events"),
            let events = JSONTextScanner.elements(members.span, in: range)
        else { return nil }
        for event in events {
            guard append(members.span, event) else { return nil }
        }
        return text
    }

    private mutating func append(_ bytes: Span<UInt8>, _ event: Range<Int>) -> Bool {
        guard let members = JSONTextScanner.members(bytes, in: event) else { return false }
        var (path, data, isPatch) = (Range<Int>?.none, Range<Int>?.none, false)
        for member in members {
            if JSONTextScanner.matches(bytes, member.name, "path") { path = member.value }
            if JSONTextScanner.matches(bytes, member.name, "data") { data = member.value }
            if JSONTextScanner.matches(bytes, member.name, "type") {
                isPatch = JSONTextScanner.matches(bytes, member.value, "\"patch\"")
            }
        }
        // A path has at least its quotes and a slash.
        guard let path, let data, path.count >= 3, bytes[path.lowerBound] == UInt8(ascii: "\"") else { return false }
        let inner = path.lowerBound + 1..<path.upperBound - 1
        return isPatch ? appendPatch(bytes, inner, data) : appendPut(bytes, inner, data)
    }

    /// - Parameter path: between its quotes.
    private mutating func appendPut(_ bytes: Span<UInt8>, _ path: Range<Int>, _ data: Range<Int>) -> Bool {
        if !isExport, PlainForm.isPriority(bytes, path) { return true }
        guard let value = value(bytes, data, isWhole: path.count == 1) else { return false }
        begin("put")
        copy(bytes, path)
        appendData()
        text += value
        endBlock()
        return true
    }

    /// The value in the form of a GET.
    ///
    /// - Parameter isWhole: it is the value of the request's own path.
    private func value(_ bytes: Span<UInt8>, _ range: Range<Int>, isWhole: Bool) -> [UInt8]? {
        if isExport {
            var copied: [UInt8] = []
            copied.reserveCapacity(range.count)
            for index in range { copied.append(bytes[index]) }
            guard isWhole, hasQuery else { return copied }
            return copied.elementsEqual("{}".utf8) ? Array("null".utf8) : ValuePrinting.inKeyOrder(copied)
        }
        return isWhole && hasQuery ? PlainForm.plainResult(bytes, in: range) : PlainForm.plain(bytes, in: range)
    }

    /// A patch names children of one node: members that lie deeper become patches of their own parents, since clients
    /// merge the members of a patch as keys. No path of a patch is below another, so that their order has no meaning.
    private mutating func appendPatch(_ bytes: Span<UInt8>, _ path: Range<Int>, _ data: Range<Int>) -> Bool {
        guard let members = JSONTextScanner.members(bytes, in: data) else { return false }
        let kept = members.filter { isExport || !PlainForm.isPriority(bytes, $0.name) }
        let splits = kept.map { split(bytes, $0.name) }
        var index = 0
        while index < kept.count {
            var end = index + 1
            while end < kept.count, Self.equal(bytes, splits[index].parent, splits[end].parent) { end += 1 }
            begin(end - index == 1 ? "put" : "patch")
            if path.count > 1 || splits[index].parent.isEmpty { copy(bytes, path) }
            if !splits[index].parent.isEmpty {
                text.append(UInt8(ascii: "/"))
                copy(bytes, splits[index].parent)
            }
            guard append(bytes, kept[index..<end], keys: splits[index..<end].map(\.key)) else { return false }
            endBlock()
            index = end
        }
        return true
    }

    /// The rest of a put of one member, or of a patch of several ones.
    private mutating func append(
        _ bytes: Span<UInt8>, _ members: ArraySlice<JSONTextScanner.Member>, keys: [Range<Int>]
    ) -> Bool {
        if let only = members.first, members.count == 1, let key = keys.first {
            if text.last != UInt8(ascii: "/") { text.append(UInt8(ascii: "/")) }
            copy(bytes, key)
            appendData()
            guard let value = value(bytes, only.value, isWhole: false) else { return false }
            text += value
            return true
        }
        appendData()
        text.append(UInt8(ascii: "{"))
        for (position, (member, key)) in zip(members, keys).enumerated() {
            if position > 0 { text.append(UInt8(ascii: ",")) }
            text.append(UInt8(ascii: "\""))
            copy(bytes, key)
            text += Array("\":".utf8)
            guard let value = value(bytes, member.value, isWhole: false) else { return false }
            text += value
        }
        text.append(UInt8(ascii: "}"))
        return true
    }

    /// The path of a member's parent, and its key; both between the quotes.
    private func split(_ bytes: Span<UInt8>, _ name: Range<Int>) -> (parent: Range<Int>, key: Range<Int>) {
        guard let slash = name.last(where: { bytes[$0] == UInt8(ascii: "/") }) else {
            return (name.lowerBound..<name.lowerBound, name)
        }
        return (name.lowerBound..<slash, slash + 1..<name.upperBound)
    }

    private static func equal(_ bytes: Span<UInt8>, _ left: Range<Int>, _ right: Range<Int>) -> Bool {
        left.count == right.count
            && zip(left, right).allSatisfy { bytes[$0] == bytes[$1] }
    }

    // MARK: Bytes

    private mutating func begin(_ name: String) { text += Array("event: \(name)\ndata: {\"path\":\"".utf8) }

    private mutating func appendData() { text += Array("\",\"data\":".utf8) }

    private mutating func endBlock() { text += Array("}\n\n".utf8) }

    private mutating func copy(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        for index in range { text.append(bytes[index]) }
    }
}
