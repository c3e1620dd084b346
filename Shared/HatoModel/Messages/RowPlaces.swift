/// Finds rows that cannot both be: two for one place, or one below the value of another. Whichever were written later
/// would take the earlier one's place without a word.
///
/// Of the places before, the first are remembered, as many as fit: rows for others are not compared.
package struct RowPlaces: Sendable {
    package static let bytesMax = 256 << 20
    /// What a place takes besides its text, about.
    package static let placeBytes = 64

    private let bytesMax: Int
    private var bytes = 0
    /// The places of values and those above them, as text; the root is empty. Bytes, for keys are compared by these.
    private var values: Set<[UInt8]> = []
    private var parents: Set<[UInt8]> = []

    /// - Parameter bytesMax: what the places may take; the one that reaches it is the last to be remembered.
    package init(bytesMax: Int = RowPlaces.bytesMax) { self.bytesMax = bytesMax }

    /// Notes the place of a row. What speaks against it, as the end of a sentence; nil when nothing does.
    package mutating func problem(with path: TreePath) -> String? {
        // It stands beside a value as well as beside children.
        if path.isPriority { return nil }
        let place = path.isRoot ? [] : Array(path.text.utf8)
        if values.contains(place) { return "has \"\(path.text)\" a second time" }
        if parents.contains(place) { return "has a value for \"\(path.text)\"; earlier rows lie below it" }
        var end = place.count
        while let slash = place[..<end].lastIndex(of: UInt8(ascii: "/")) {
            end = slash
            let above = Array(place[..<end])
            if values.contains(above) {
                let name = above.isEmpty ? "/" : String(decoding: above, as: UTF8.self)
                return "has \"\(path.text)\", which lies below the value of \"\(name)\""
            }
            // What is above it is there too, and no value.
            if parents.contains(above) { break }
            if hasRoom(for: above) { parents.insert(above) }
        }
        if hasRoom(for: place) { values.insert(place) }
        return nil
    }

    private mutating func hasRoom(for place: [UInt8]) -> Bool {
        guard bytes < bytesMax else { return false }
        bytes += place.count + Self.placeBytes
        return true
    }
}
