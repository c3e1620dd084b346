/// Finds rows that contradict each other: two for one path, or one below the value of another. The later rows would
/// silently replace the earlier ones.
///
/// It keeps the first paths, as many as fit into `bytesMax`: rows at other paths are not compared.
package struct RowConflictFinder: Sendable {
    package static let bytesMax = 256 << 20
    /// About the memory of a path besides its text.
    package static let placeBytes = 64

    private let bytesMax: Int
    private var bytes = 0
    /// The paths of values and of their ancestors, as text; the root is empty. Bytes, since keys are compared by these.
    private var values: Set<[UInt8]> = []
    private var parents: Set<[UInt8]> = []

    /// - Parameter bytesMax: the memory for paths; the path that reaches it is the last that is kept.
    package init(bytesMax: Int = RowConflictFinder.bytesMax) { self.bytesMax = bytesMax }

    /// Adds the path of a row. Returns its conflict as the end of a sentence; nil when there is none.
    package mutating func problem(with path: TreePath) -> String? {
        // A priority may be beside a value as well as beside children.
        if path.isPriority { return nil }
        let place = path.isRoot ? [] : Array(path.text.utf8)
        if values.contains(place) { return "has \"\(path.text)\" a second time" }
        if parents.contains(place) { return "has a value for \"\(path.text)\"; earlier rows are below it" }
        var end = place.count
        while let slash = place[..<end].lastIndex(of: UInt8(ascii: "/")) {
            end = slash
            let above = Array(place[..<end])
            if values.contains(above) {
                let name = above.isEmpty ? "/" : String(decoding: above, as: UTF8.self)
                return "has \"\(path.text)\", which is below the value of \"\(name)\""
            }
            // Its ancestors are parents too, without a value.
            if parents.contains(above) { break }
            if reserve(for: above) { parents.insert(above) }
        }
        if reserve(for: place) { values.insert(place) }
        return nil
    }

    private mutating func reserve(for place: [UInt8]) -> Bool {
        guard bytes < bytesMax else { return false }
        bytes += place.count + Self.placeBytes
        return true
    }
}
