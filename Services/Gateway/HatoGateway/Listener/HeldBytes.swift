import HatoRPC

/// How many bytes of incomplete requests and messages an event loop holds, with a bound for all of them and one for
/// those of each client (`ClientAddress`).
///
/// `of` gives the counter of one client, which counts in that of the loop, too.
final class HeldBytes {
    private let totals: Totals
    /// Nil: of no client.
    private let client: String?

    private final class Totals {
        let max: Int
        let perClientMax: Int
        var count = 0
        /// Those that hold something.
        var byClient: [String: Int] = [:]

        init(max: Int, perClientMax: Int) { (self.max, self.perClientMax) = (max, perClientMax) }
    }

    init(max: Int, perClientMax: Int = .max) {
        (totals, client) = (Totals(max: max, perClientMax: perClientMax), nil)
    }

    private init(_ totals: Totals, of client: String) { (self.totals, self.client) = (totals, client) }

    /// The counter of the client at this IP address.
    func of(_ address: String) -> HeldBytes { HeldBytes(totals, of: ClientAddress(address).network) }

    /// What all clients hold.
    var count: Int { totals.count }

    /// Takes a change; false, without taking it, when there are too many.
    func change(by bytes: Int) -> Bool {
        if bytes > 0 {
            let own = client.flatMap { totals.byClient[$0] } ?? 0
            guard totals.count + bytes <= totals.max, client == nil || own + bytes <= totals.perClientMax else {
                return false
            }
        }
        add(bytes)
        return true
    }

    func release(_ bytes: Int) { add(-bytes) }

    private func add(_ bytes: Int) {
        totals.count += bytes
        guard let client, bytes != 0 else { return }
        let own = totals.byClient[client, default: 0] + bytes
        totals.byClient[client] = own > 0 ? own : nil
    }
}
