/// The methods with the prefix that JSON-RPC reserves.
public enum RPC {
    public static let methods: [any RPCRequest.Type] = [Discover.self]

    /// The OpenRPC 1.3 document of the service.
    public struct Discover: RPCRequest {
        public typealias Result = JSONValue

        public static let method = "rpc.discover"
        public static let summary = """
            Returns the OpenRPC document of all methods: `openrpc` (its version), `info`, `methods` (for each \
            its `name`, `summary`, `params`, `result`, `errors`, `examples`, `x-access`, `x-effect` and \
            `x-slow`), `components.errors` (of every method) and, if there are any, `x-notifications`
            """
        public static let access = Access.anyone
        public static let effect = Effect.read
        public static let example = RPCExample(
            Discover(), ["openrpc": "1.3.2", "info": ["title": "Hato messages", "version": "0.1.0"], "methods": []])

        public static let fields = Fields<Self>(blank: Self())

        public init() {}
    }
}
