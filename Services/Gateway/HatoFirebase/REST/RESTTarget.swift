public import HatoModel

/// What the path of a REST request names.
public enum RESTTarget: Sendable, Hashable {
    /// A node of the tree, or a priority.
    case node(TreePath)
    /// The rules: `/.settings/rules.json`.
    case rules
    /// The coverage of the rules, which is always empty: `/.inspect/coverage.json`.
    case coverage

    private static let suffix = ".json"

    /// Reads an encoded path (spec realtime-database §7). `/a/b.json` and `/a/b/.json` are the same node.
    init(_ path: Substring) throws(RESTError) {
        guard path.utf8.count >= Self.suffix.utf8.count,
            path.utf8.suffix(Self.suffix.utf8.count).elementsEqual(Self.suffix.utf8)
        else { throw RESTErrors.noSuffix }
        guard path.utf8.first == UInt8(ascii: "/") else { throw RESTErrors.invalidPath }
        var segments: [String] = []
        for encoded in path.utf8.dropLast(Self.suffix.utf8.count).split(separator: UInt8(ascii: "/")) {
            guard let segment = PercentDecoding.decode(Substring(encoded)) else { throw RESTErrors.invalidPath }
            segments.append(segment)
        }
        switch segments.first {
        case ".settings":
            guard segments == [".settings", "rules"] else { throw RESTErrors.notFound }
            self = .rules
        case ".inspect":
            guard segments == [".inspect", "coverage"] else { throw RESTErrors.notFound }
            self = .coverage
        default: self = .node(try Self.path(segments))
        }
    }

    private static func path(_ segments: [String]) throws(RESTError) -> TreePath {
        let isPriority = segments.last == ".priority"
        var keys: [TreeKey] = []
        for segment in isPriority ? segments.dropLast() : segments[...] {
            guard let key = try? TreeKey(segment) else { throw RESTErrors.invalidPath }
            keys.append(key)
        }
        do {
            let node = try TreePath(keys: keys)
            return isPriority ? try node.appending(try TreePath("/.priority")) : node
        } catch { throw RESTErrors.pathTooDeep }
    }
}
