/// An error of a service that knows what it is on the wire. Each service has one table of these, `RPCError+….swift`.
public protocol RPCErrorConvertible: Error {
    var rpcError: RPCError { get }
}

extension RPCError: RPCErrorConvertible {
    public var rpcError: RPCError { self }

    /// What a caller may know of any error: its own wire form, or -32603 where it has none (the log gets the rest).
    public init(_ error: any Error) {
        switch error {
        case let error as any RPCErrorConvertible: self = error.rpcError
        default: self = .internalError
        }
    }
}
