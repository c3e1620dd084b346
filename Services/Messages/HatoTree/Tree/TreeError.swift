public import HatoModel

/// Why a read or a write of the tree is refused. Errors of the reader itself are rethrown unchanged.
public enum TreeError: Error, Sendable {
    /// The value of a parameter is wrong.
    case invalid(parameter: String, ArgumentError)
    /// The response, or the node of a precondition, is larger than `bytesMax`.
    case tooBig(bytesMax: Int)
    /// `ifMatch` named another etag than the node's; `value` nil: too large for the error.
    case etagMismatch(etag: String, value: TreeNode?)
    /// `ifVersion` is older than the newest change of the node.
    case versionMismatch
    /// The client's push key is taken, by another value as far as the writer may know.
    case keyExists(TreePath)
    /// A row cannot be read: this code never writes it.
    case corrupted(String)

    /// Whether the condition of a write did not hold.
    public var isRefusedCondition: Bool {
        switch self {
        case .etagMismatch, .versionMismatch: true
        case .invalid, .tooBig, .keyExists, .corrupted: false
        }
    }
}

extension TreeError: RPCErrorConvertible {
    public var rpcError: RPCError {
        switch self {
        case .invalid(let parameter, let error):
            .invalidArgument(parameter, reason: error.reason, error.message)
        case .tooBig(let bytesMax):
            .resourceExhausted(
                reason: "too_big",
                "The node is larger than \(bytesMax) bytes; page it, query it, read it shallow or export it")
        case .etagMismatch(let etag, let value):
            Self.mismatch(etag, value)
        case .versionMismatch:
            .failedPrecondition(reason: "version_mismatch", "The node has changed since that version")
        case .keyExists(let path):
            .alreadyExists(reason: "key_exists", "There is a value at \(path), and not by this push")
        case .corrupted:
            .internalError
        }
    }

    /// Bytes of a node, and of its JSON, up to which it is part of `etagMismatch`. A larger one is read with a request
    /// of its own, which reserves the memory of its response.
    static let mismatchBytesMax = 4 << 10

    private static func mismatch(_ etag: String, _ value: TreeNode?) -> RPCError {
        var data: JSONObject = ["etag": .string(etag)]
        if let value = value?.plain {
            var writer = JSONWriter()
            writer.write(value)
            if writer.count <= mismatchBytesMax { data["value"] = value }
        }
        return .failedPrecondition(
            reason: "etag_mismatch", "The node has changed: its etag is \(etag)", data: data)
    }
}
