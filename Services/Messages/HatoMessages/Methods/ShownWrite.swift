import HatoModel
import HatoTree

/// What the response to a write shows of what was written. Pure.
struct ShownWrite: Sendable {
    private let showsEtag: Bool
    private let showsValue: Bool
    /// Whether it takes longer to make than others may wait for.
    let takesLong: Bool
    /// What the values of one response may take.
    private let bytesMax: Int

    /// Beside the values of a response.
    private static let envelopeBytes = 4 << 10

    /// - Parameter mutation: is asked to keep what it writes.
    init(etag: Bool? = nil, echo: Bool?, of mutation: inout Mutation, _ limits: MessagesLimits) {
        showsEtag = etag ?? false
        showsValue = echo ?? false
        mutation.showsWritten = showsEtag || showsValue
        takesLong = mutation.showsWritten && mutation.isLarge(limits)
        bytesMax = max(0, limits.responseBytesMax - Self.envelopeBytes)
    }

    /// Whether it shows anything.
    var isAsked: Bool { showsEtag || showsValue }

    func etag(of node: TreeNode?) -> String? { showsEtag ? node.map { SimpleHash.etag($0) } : nil }

    func value(of node: TreeNode?) -> JSONValue? {
        guard showsValue, let node else { return Optional.none }
        let value = node.plain
        return fits(value) ? .some(value) : Optional.none
    }

    /// - Parameter names: of the nodes, in their order.
    func values(of nodes: [TreeNode]?, named names: [String]) -> JSONObject? {
        guard showsValue, let nodes, nodes.count == names.count else { return nil }
        let values = JSONObject(uniqueMembers: zip(names, nodes).map { JSONObject.Member($0, $1.plain) })
        return fits(.object(values)) ? values : nil
    }

    /// Whether a response has it: numbers may be longer than they were in the request.
    private func fits(_ value: JSONValue) -> Bool {
        guard takesLong else { return true }
        var writer = JSONWriter()
        writer.write(value)
        return writer.count <= bytesMax
    }
}
