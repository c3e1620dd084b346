/// An error of a service with a wire form. Each service has one table of these, `RPCError+….swift`.
public protocol RPCErrorConvertible: Error {
    var rpcError: RPCError { get }
}

extension RPCError: RPCErrorConvertible {
    public var rpcError: RPCError { self }

    /// The wire form of any error: its own, or -32603 without details (the log gets these).
    public init(_ error: any Error) {
        switch error {
        case let error as any RPCErrorConvertible: self = error.rpcError
        default: self = .internalError
        }
    }
}
