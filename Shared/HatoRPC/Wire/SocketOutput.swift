import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// What the system keeps of the output of one connection.
///
/// Without a bound, the buffer of a socket grows to megabytes while its peer reads fast, and stays so when the peer
/// stops: memory that no budget counts. TCP_NOTSENT_LOWAT bounds the part that is not on its way to the peer yet. A
/// peer that does not read keeps the rest in its own buffers. SO_SNDBUF stays as the system sets it: it would also
/// bound what is on its way, and with it the speed of a fast link over a long distance.
enum SocketOutput {
    static func option(unsentBytesMax: Int) -> (option: NIOBSDSocket.Option, value: SocketOptionValue) {
        (NIOBSDSocket.Option(rawValue: TCP_NOTSENT_LOWAT), SocketOptionValue(unsentBytesMax))
    }
}
