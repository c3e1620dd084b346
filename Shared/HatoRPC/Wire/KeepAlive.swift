import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// TCP's own probes, which find peers that vanished without a word.
enum KeepAlive {
    #if canImport(Darwin)
        private static let idle = TCP_KEEPALIVE
    #else
        private static let idle = TCP_KEEPIDLE
    #endif

    static func options(_ limits: RPCLimits) -> [(option: NIOBSDSocket.Option, value: SocketOptionValue)] {
        [
            (NIOBSDSocket.Option(rawValue: idle), SocketOptionValue(limits.keepAliveIdleSeconds)),
            (NIOBSDSocket.Option(rawValue: TCP_KEEPINTVL), SocketOptionValue(limits.keepAliveIntervalSeconds)),
            (NIOBSDSocket.Option(rawValue: TCP_KEEPCNT), SocketOptionValue(limits.keepAliveProbes)),
        ]
    }
}
