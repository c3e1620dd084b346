/// Why an address is not called.
public enum AddressRefusal: Error, Sendable, Hashable {
    /// `why` continues "The address is refused: ".
    case invalidURL(String)
    case plainHTTP
    case portNotAllowed(Int, allowed: [Int])
    case privateAddress(host: String)
    case unresolvable(host: String, String)
    /// Too many names wait for a look-up: whether the host has an address is not known.
    case noLookUp(host: String)

    /// The stable string of protocol §3.
    public var reason: String {
        switch self {
        case .invalidURL: "invalid_url"
        case .plainHTTP: "plain_http"
        case .portNotAllowed: "port_not_allowed"
        case .privateAddress: "private_address"
        case .unresolvable, .noLookUp: "unresolvable_host"
        }
    }

    /// What is wrong with the address, as a sentence.
    public var message: String {
        switch self {
        case .invalidURL(let why): "The address is refused: \(why)"
        case .plainHTTP: "The address is refused: only https is called"
        case .portNotAllowed(let port, let allowed):
            "The address is refused: port \(port) is not one of \(allowed.map(String.init).joined(separator: ", "))"
        case .privateAddress(let host): "The address is refused: \(host) is not on the public internet"
        case .noLookUp(let host): "The host \(host) is not resolved yet: too many names wait; try again"
        case .unresolvable(let host, let why): "The host \(host) cannot be resolved: \(why)"
        }
    }
}
