public import HatoModel

/// The proxies in front of the gateway whose `X-Forwarded-For` it believes.
public struct TrustedProxies: Sendable, Hashable {
    private var networks: [IPNetwork] = []

    /// No proxy: the address of a client is that of its socket.
    public static let none = TrustedProxies()

    private init() {}

    /// Reads addresses and networks with commas between them.
    ///
    /// - Throws: `ArgumentError` for what is neither.
    public init(_ list: String) throws(ArgumentError) {
        for text in list.split(separator: ",") { networks.append(try IPNetwork(text.trimmingBlanks)) }
    }

    /// Whether the peer is one of them.
    func contains(_ peer: String) -> Bool { IPNumber(peer).map(contains) ?? false }

    private func contains(_ address: IPNumber) -> Bool { networks.contains { $0.contains(address) } }

    /// The address of the client: the rightmost one of the headers that is no trusted proxy.
    ///
    /// Each proxy appends the address of its peer, so what stands left of the first address that is no trusted proxy
    /// comes from the client itself. Where the headers name trusted proxies only, it is the leftmost of them; behind a
    /// text that is no address, it is the proxy that appended that text.
    ///
    /// - Parameters:
    ///   - peer: the address of the socket.
    ///   - headers: the values of `X-Forwarded-For`, in their order.
    func client(behind peer: String, _ headers: [String]) -> String {
        guard !networks.isEmpty, var client = IPNumber(peer), contains(client) else { return peer }
        for header in headers.reversed() {
            for entry in header.split(separator: ",").reversed() {
                let text = entry.trimmingBlanks
                guard !text.isEmpty else { continue }
                guard let address = Self.address(text) else { return client.text }
                client = address
                guard contains(address) else { return client.text }
            }
        }
        return client.text
    }

    /// Some proxies write the port of the client too: `192.0.2.1:80`, `[2001:db8::1]:80`.
    private static func address(_ text: String) -> IPNumber? {
        if let address = IPNumber(text) { return address }
        if text.hasPrefix("[") {
            let inner = text.dropFirst().prefix { $0 != "]" }
            let rest = text.dropFirst(inner.count + 1)
            guard rest == "]" || rest.hasPrefix("]:") else { return nil }
            return IPNumber(inner)
        }
        guard let colon = text.firstIndex(of: ":") else { return nil }
        return IPNumber(text[..<colon])
    }
}

extension Substring {
    /// Without blanks and tabs at its ends.
    var trimmingBlanks: String {
        func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }
        let end = lastIndex { !isBlank($0) }.map(index(after:)) ?? startIndex
        return String(self[..<end].drop(while: isBlank))
    }
}
